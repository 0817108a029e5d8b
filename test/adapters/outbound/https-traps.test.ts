// Security faults of other HTTP clients: one test for each.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { judgeHeaders } from '#src/domain/destination/headers.ts';
import type { AttemptReport } from '#src/ports/outbound.ts';
import { startTlsTarget } from '#test/support/process/tls-target.ts';
import { cidrs, inLab, type Lab, until, withListener } from './lab.ts';

const ONE_CALL = fileURLToPath(new URL('./one-call.ts', import.meta.url));

/** Shorter than the longest time limit of a call: a timer that is left behind would keep the process alive longer. */
const LIMIT_MS = 50_000;

/** The call in a separate process, which must end within the limit without being killed. */
function callFromProcess(
  { target, dns }: Lab,
  env: Readonly<Record<string, string>>,
  over: { url?: string; caPem?: string | null; timeoutMs?: number } = {},
): Promise<AttemptReport> {
  const config = { url: target.url(), dns: dns.address, caPem: target.caPem, timeoutMs: 30_000, ...over };
  const flags = 'Deno' in globalThis ? ['run', '--allow-all', '--no-check'] : [];
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [...flags, ONE_CALL, JSON.stringify(config)],
      { env: { ...process.env, ...env }, timeout: LIMIT_MS },
      (error, stdout, stderr) =>
        error ? reject(new Error(stderr, { cause: error })) : resolve(JSON.parse(stdout)),
    );
  });
}

test('NODE_TLS_REJECT_UNAUTHORIZED=0 does not switch certificate checking off', async () => {
  await inLab({}, async (lab) => {
    const other = await startTlsTarget();
    try {
      const report = await callFromProcess(lab, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, { url: other.url() });
      assert.deepEqual([report.errorCategory, report.sent], ['tls_error', 'no']);
      assert.equal(other.requests.length, 0);
    } finally {
      await other.close();
    }
  });
});

test('extra roots and the runtime’s roots are both trusted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'relay-roots-'));
  await inLab({}, async (lab) => {
    const other = await startTlsTarget();
    try {
      const file = join(folder, 'root.pem');
      writeFileSync(file, other.caPem);
      const env = { NODE_EXTRA_CA_CERTS: file };
      for (const [url, caPem] of [
        [other.url(), lab.target.caPem],
        [lab.target.url(), lab.target.caPem],
        [other.url(), null],
      ] as const) {
        assert.equal((await callFromProcess(lab, env, { url, caPem })).errorCategory, null);
      }
      const stranger = await callFromProcess(lab, env, { caPem: null });
      assert.equal(stranger.errorCategory, 'tls_error');
    } finally {
      await other.close();
      rmSync(folder, { recursive: true });
    }
  });
});

test('proxy variables are ignored', async () => {
  await withListener(
    (socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'),
    async (proxy) => {
      await inLab({}, async (lab) => {
        const address = `http://127.0.0.1:${proxy.port}`;
        const env = {
          HTTPS_PROXY: address,
          https_proxy: address,
          ALL_PROXY: address,
          NODE_USE_ENV_PROXY: '1',
        };
        const report = await callFromProcess(lab, { ...env, NO_PROXY: '', no_proxy: '' });
        assert.equal(report.errorCategory, null);
        assert.equal(lab.target.requests.length, 1);
        assert.equal(proxy.connections(), 0);
      });
    },
  );
});

test('after a timeout nothing keeps the process alive', async () => {
  await inLab({ answers: { 'target.test': { drop: true } } }, async (lab) => {
    const report = await callFromProcess(lab, {}, { timeoutMs: 300 });
    assert.deepEqual([report.errorCategory, report.phase], ['timeout', 'dns']);
    lab.dns.set('target.test', ['127.0.0.1']);
    lab.target.answer(() => undefined);
    const later = await callFromProcess(lab, {}, { timeoutMs: 12_000 });
    assert.deepEqual([later.errorCategory, later.phase], ['timeout', 'headers']);
  });
});

test('after a success nothing keeps the process alive', async () => {
  await inLab({}, async (lab) => {
    assert.equal((await callFromProcess(lab, {}, { timeoutMs: 60_000 })).errorCategory, null);
  });
});

test('200 hanging targets end as 200 timeouts without open connections', async () => {
  await inLab({ handler: () => undefined }, async ({ target, send }) => {
    const reports = await Promise.all(
      Array.from({ length: 200 }, () => send({ url: target.url('/hook', '127.0.0.1'), timeoutMs: 12_000 })),
    );
    assert.deepEqual([...new Set(reports.map((report) => report.errorCategory))], ['timeout']);
    // On a busy machine some time out before their handshake ends, and send nothing.
    const asked = reports.filter(({ phase }) => phase === 'headers').length;
    assert.ok(asked > 0 && asked <= target.connections() && target.connections() <= 200, `${asked}`);
    await until(() => target.open() === 0);
  });
});

test('the checked address is dialled, not localhost', async () => {
  await inLab({ host: '127.0.0.2', answers: { '*': ['127.0.0.2'] } }, async ({ target, send }) => {
    await withListener(
      (socket) => socket.destroy(),
      async (localhost) => {
        const report = await send();
        assert.deepEqual([report.errorCategory, report.address], [null, '127.0.0.2']);
        assert.equal(localhost.connections(), 0);
      },
      { port: target.port },
    );
  });
});

test('a name whose DNS answer changes is called at the first, checked address, 20 times of 20', async () => {
  const rebinding = [{ addresses: ['127.0.0.1'] }, { addresses: ['127.0.0.2'] }];
  const names = Array.from({ length: 20 }, (_, i) => `n${i}.target.test`);
  const answers = Object.fromEntries(names.map((name) => [name, rebinding]));
  await inLab({ answers, allow: cidrs('127.0.0.1/32') }, async ({ target, send, dns }) => {
    await withListener(
      (socket) => socket.destroy(),
      async (inside) => {
        for (const name of names) {
          const report = await send({ url: target.url('/hook', name) });
          assert.deepEqual([report.errorCategory, report.address], [null, '127.0.0.1']);
          assert.deepEqual([dns.asked(name, 'A'), dns.asked(name, 'AAAA')], [1, 1]);
          const again = await send({ url: target.url('/hook', name) });
          assert.deepEqual([again.errorCategory, again.sent], ['target_refused', 'no']);
        }
        assert.equal(target.requests.length, 20);
        assert.equal(inside.connections(), 0);
      },
      { host: '127.0.0.2', port: target.port },
    );
  });
});

test('no header of the caller changes framing, host or route of the request', async () => {
  const caller = {
    Host: 'metadata.internal',
    'Content-Length': '0',
    'Transfer-Encoding': 'chunked',
    TE: 'trailers',
    Trailer: 'x',
    Upgrade: 'h2c',
    'HTTP2-Settings': 'AAMAAABkAAQAAP__',
    Expect: '100-continue',
    Connection: 'keep-alive, x-secret',
    'X-Secret': 'for the proxy only',
    'Keep-Alive': 'timeout=60',
    'Proxy-Authorization': 'Basic eDp5',
    'X-Forwarded-For': '127.0.0.1',
    Forwarded: 'for=127.0.0.1',
    Via: '1.1 somebody',
    'Metadata-Flavor': 'Google',
    'X-aws-ec2-metadata-token-ttl-seconds': '60',
    'X-PAYMENT': 'signed',
    Authorization: 'Bearer t',
    Cookie: 'a=b',
    constructor: 'c',
    ['__proto__']: 'p',
  };
  const judged = judgeHeaders(caller);
  assert.ok(!('refused' in judged));
  await inLab({}, async ({ target, send }) => {
    assert.equal((await send({ headers: judged.forwarded })).errorCategory, null);
    const [request] = target.requests;
    assert.deepEqual(request?.headerLines.map(([name, value]) => `${name.toLowerCase()}: ${value}`).sort(), [
      '__proto__: p',
      'authorization: Bearer t',
      'connection: close',
      'constructor: c',
      'content-length: 7',
      'cookie: a=b',
      `host: target.test:${target.port}`,
    ]);
    assert.equal(request?.body.toString(), '{"a":1}');
  });
});

test('a request without a body has content-length 0', async () => {
  await inLab({}, async ({ target, send }) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.equal((await send({ method, body: null })).errorCategory, null);
    }
    for (const request of target.requests) {
      assert.equal(request.headers['content-length'], '0');
      assert.equal(request.headers['transfer-encoding'], undefined);
    }
    assert.deepEqual(
      target.requests.map((request) => request.method),
      ['POST', 'PUT', 'PATCH', 'DELETE'],
    );
  });
});

test('SNI and Host contain the name without its trailing dot, and the path is the checked one', async () => {
  await inLab({}, async ({ target, send }) => {
    await send({ url: `https://TARGET.test.:${target.port}/a/../b%2F?q=%20'|#fragment` });
    const [request] = target.requests;
    assert.equal(request?.servername, 'target.test');
    assert.equal(request?.headers.host, `target.test:${target.port}`);
    assert.equal(request?.path, '/b%2F?q=%20%27|');
  });
});

test('a body of 128 KiB arrives completely', async () => {
  const body = new Uint8Array(128 * 1024).map((_, i) => i % 251);
  await inLab({}, async ({ target, send }) => {
    assert.equal((await send({ body })).errorCategory, null);
    assert.ok(target.requests[0]?.body.equals(Buffer.from(body)));
  });
});

// Deno reads the system's roots for every connection: a short limit would be decided by the machine.
test('50 concurrent calls are 50 requests with one connection each', async () => {
  await inLab({}, async ({ target, send }) => {
    const reports = await Promise.all(
      Array.from({ length: 50 }, (_, i) => send({ headers: [['x-n', String(i)]], timeoutMs: 30_000 })),
    );
    assert.deepEqual([...new Set(reports.map((report) => report.errorCategory))], [null]);
    const seen = target.requests.map((request) => Number(request.headers['x-n'])).sort((a, b) => a - b);
    assert.deepEqual(
      seen,
      Array.from({ length: 50 }, (_, i) => i),
    );
  });
});
