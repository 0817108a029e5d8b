// A name with several addresses: they are dialled in order until one accepts the connection.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { inLab, withListener } from './lab.ts';

const GOOD = '127.0.0.1';
/** Nothing listens there. */
const DEAD = '127.0.0.9';

test('with a dead first address the second is dialled, and the request is sent once', async () => {
  await inLab({ answers: { 'target.test': [DEAD, GOOD] } }, async ({ send, target, dns }) => {
    const report = await send();
    assert.deepEqual([report.errorCategory, report.reason, report.address], [null, null, GOOD]);
    assert.deepEqual([target.requests.length, target.connections()], [1, 1]);
    assert.equal(dns.asked('target.test'), 1);
    assert.notEqual(report.timings.connectMs, null);
  });
});

test('with a dead IPv4 address the IPv6 address is dialled', async () => {
  await inLab({ host: '::1', answers: { 'target.test': [DEAD, '::1'] } }, async ({ send, target }) => {
    const report = await send();
    assert.deepEqual([report.errorCategory, report.address], [null, '::1']);
    assert.equal(target.requests.length, 1);
  });
});

test('an address that is not exempt is dialled by no attempt, even after a dead one', async () => {
  await inLab({ answers: { 'target.test': [DEAD, '10.0.0.1', GOOD] } }, async ({ send, target }) => {
    const report = await send();
    assert.deepEqual(
      [report.errorCategory, report.reason, report.address],
      ['target_refused', 'not_permitted', null],
    );
    assert.equal(target.connections(), 0);
  });
});

test('all addresses dead is the failure of the first that says more than no_route', async () => {
  await inLab({ answers: { 'target.test': [DEAD, '127.0.0.10', '::1'] } }, async ({ send }) => {
    const report = await send();
    assert.deepEqual(
      [report.errorCategory, report.reason, report.phase, report.sent],
      ['connect_error', 'connection_refused', 'connect', 'no'],
    );
  });
});

test('after an address has accepted the connection no other is dialled', async () => {
  await inLab({ answers: { 'target.test': [DEAD, GOOD] } }, async ({ send, target }) => {
    const close = (socket: Socket) => void socket.once('data', () => socket.end());
    await withListener(
      close,
      async ({ connections }) => {
        const report = await send();
        assert.deepEqual(
          [report.errorCategory, report.reason, report.phase],
          ['connect_error', 'reset', 'tls'],
        );
        assert.deepEqual([connections(), target.connections()], [1, 0]);
      },
      { host: DEAD, port: target.port },
    );
  });
});

test('at most eight addresses are dialled', async () => {
  const many = Array.from({ length: 9 }, (_, n) => `127.0.1.${n + 1}`);
  await inLab({ answers: { 'target.test': many } }, async ({ send, target }) => {
    await withListener(
      () => undefined,
      async ({ connections }) => {
        assert.equal((await send()).reason, 'connection_refused');
        assert.equal(connections(), 0);
      },
      { host: '127.0.1.9', port: target.port },
    );
  });
});

/** How many connections a queue of length 1 holds under Linux. */
const QUEUED = 2;

/** Listens, says so immediately before it blocks, and accepts nothing: what the queue does not hold waits. */
const DEAF = `const server = require('node:net').createServer();
server.listen({ host: process.argv[1], port: Number(process.argv[2]), backlog: 1 }, () => {
  setImmediate(() => {
    require('node:fs').writeSync(1, 'listening');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
});`;

test('a silent first address leaves time for the second', {
  skip: process.platform !== 'linux',
}, async () => {
  await inLab({ answers: { 'target.test': [DEAD, GOOD] } }, async ({ send, target }) => {
    const deaf = spawn('node', ['-e', DEAF, DEAD, String(target.port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(deaf.stdout, 'data');
    const fillers = Array.from({ length: QUEUED }, () => connect({ host: DEAD, port: target.port }));
    for (const socket of fillers) socket.on('error', () => undefined);
    try {
      await Promise.all(fillers.map((socket) => once(socket, 'connect')));
      const report = await send({ timeoutMs: 9000 });
      assert.deepEqual([report.errorCategory, report.address], [null, GOOD]);
      assert.equal(target.requests.length, 1);
    } finally {
      for (const socket of fillers) socket.destroy();
      deaf.kill('SIGKILL');
    }
  });
});
