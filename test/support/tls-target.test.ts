import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { startDnsServer } from './dns-server.ts';
import { startTlsTarget, type TlsTarget } from './tls-target.ts';

const REQUEST =
  'POST /hook?x=1 HTTP/1.1\r\nHost: target.test\r\nX-Thing: One\r\nContent-Length: 4\r\n\r\nabcd';

test('the target answers over TLS with a certificate of its root, and records the request', async () => {
  const target = await startTlsTarget({
    handler: () => ({ status: 418, headers: { 'x-t': '1' }, body: 'hi' }),
  });
  try {
    const text = await exchange(target);
    assert.match(text, /^HTTP\/1\.1 418 /);
    assert.match(text, /\r\n\r\nhi$/);
    const [request] = target.requests;
    assert.equal(request?.method, 'POST');
    assert.equal(request?.path, '/hook?x=1');
    assert.equal(request?.servername, 'target.test');
    assert.equal(request?.body.toString(), 'abcd');
    assert.deepEqual(request?.headerLines[1], ['X-Thing', 'One']);
    assert.equal(request?.headers['x-thing'], 'One');
    assert.equal(target.connections(), 1);
  } finally {
    await target.close();
  }
});

test('the DNS server returns a configured answer for each look-up, and counts them', async () => {
  const server = await startDnsServer({
    answers: {
      'a.test': ['127.0.0.1', '::1'],
      'b.test': [{ addresses: ['8.8.8.8'] }, { addresses: ['127.0.0.1'] }],
      'c.test': { rcode: 'SERVFAIL' },
    },
  });
  try {
    const resolver = new Resolver({ timeout: 2000, tries: 1 });
    resolver.setServers([server.address]);
    assert.deepEqual(await resolver.resolve4('a.test'), ['127.0.0.1']);
    assert.deepEqual(await resolver.resolve6('a.test'), ['::1']);
    assert.deepEqual(await resolver.resolve4('b.test'), ['8.8.8.8']);
    assert.deepEqual(await resolver.resolve4('b.test'), ['127.0.0.1']);
    assert.deepEqual(await resolver.resolve4('b.test'), ['127.0.0.1']);
    await assert.rejects(resolver.resolve4('c.test'));
    await assert.rejects(resolver.resolve4('none.test'), { code: 'ENOTFOUND' });
    assert.equal(server.asked('b.test'), 3);
    assert.equal(server.asked('a.test', 'AAAA'), 1);
  } finally {
    await server.close();
  }
});

function exchange(target: TlsTarget): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: target.port, servername: 'target.test', ca: target.caPem };
    const socket = connect({ ...options, rejectUnauthorized: true }, () => socket.write(REQUEST));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}
