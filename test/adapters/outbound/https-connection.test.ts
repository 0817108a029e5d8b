// Failures before a response: look-up, connection, handshake.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { dnsResolver } from '#src/adapters/outbound/dns.ts';
import type { Sent } from '#src/domain/event-fields.ts';
import type { FailureReason } from '#src/domain/failure-reasons.ts';
import { type AttemptReport, OutboundDefect } from '#src/ports/outbound.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import { makeSelfSigned, makeTestCa } from '#test/support/process/test-ca.ts';
import { startTlsTarget, type TlsTargetOptions } from '#test/support/process/tls-target.ts';
import { cidrs, clock, inLab, outboundWith, requestTo, targetOf, until, withListener } from './lab.ts';

type Ended = Pick<AttemptReport, 'errorCategory' | 'reason' | 'phase' | 'sent' | 'address'>;

function ended({ errorCategory, reason, phase, sent, address }: AttemptReport): Ended {
  return { errorCategory, reason, phase, sent, address };
}

/** The report of an attempt that sent nothing and received no response. */
function assertUnsent(report: AttemptReport, expected: Omit<Ended, 'sent'>): void {
  assert.deepEqual(ended(report), { ...expected, sent: 'no' });
  assert.equal(report.status, null);
  assert.equal(report.responseBytes, null);
  assert.equal(report.responseBodySha256, null);
  assert.equal(report.timings.ttfbMs, null);
}

const DAY_MS = 86_400_000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY_MS);
const names = ['target.test'];

/** Deno gives one error for an expired certificate, for one that is not valid yet, and for one of an unknown issuer. */
const unlessDeno = (reason: FailureReason): FailureReason =>
  runtimeName === 'deno' ? 'unable_to_verify_leaf' : reason;

function certificates(): readonly (readonly [string, FailureReason, TlsTargetOptions])[] {
  const ca = makeTestCa();
  const expired = ca.issue({ names, notBefore: daysFromNow(-3), notAfter: daysFromNow(-1) });
  const early = ca.issue({ names, notBefore: daysFromNow(1), notAfter: daysFromNow(3) });
  const byCommonName = ca.issue({ names: ['192.0.2.1'], commonName: 'target.test' });
  return [
    ['for another name', 'name_mismatch', { ca, names: ['other.test', '*.target.test'] }],
    ['with the name as its common name only', 'name_mismatch', { ca, identity: byCommonName }],
    [
      'with a name that cannot be read',
      'name_mismatch',
      { ca, identity: ca.issue({ names: ['"target.test'] }) },
    ],
    ['that has expired', unlessDeno('expired'), { ca, identity: expired }],
    ['of tomorrow', unlessDeno('not_yet_valid'), { ca, identity: early }],
    [
      'that has expired, of an unknown issuer',
      unlessDeno('expired'),
      {
        ca,
        identity: makeTestCa().issue({ names, notBefore: daysFromNow(-3), notAfter: daysFromNow(-1) }),
      },
    ],
    ['that is self-signed', 'self_signed', { ca, identity: makeSelfSigned({ names }) }],
    [
      'of an unknown issuer',
      'unable_to_verify_leaf',
      { ca, identity: makeTestCa('someone else').issue({ names }) },
    ],
    [
      'of an issuer that only has the same name',
      'unable_to_verify_leaf',
      { ca, identity: makeTestCa().issue({ names }) },
    ],
  ];
}

for (const [what, reason, options] of certificates()) {
  test(`a certificate ${what} is tls_error (${reason}), and nothing is sent`, async () => {
    await inLab(options, async ({ send, target }) => {
      assertUnsent(await send(), { errorCategory: 'tls_error', reason, phase: 'tls', address: '127.0.0.1' });
      assert.equal(target.requests.length, 0);
      assert.equal(target.connections(), 1);
    });
  });
}

/** A TLS 1.1 ServerHello, sent without reading the client's hello. */
function helloOfTls11(): Buffer {
  const body = Buffer.concat([Buffer.from([3, 2]), Buffer.alloc(32, 7), Buffer.from([0, 0xc0, 0x13, 0])]);
  const hello = Buffer.concat([Buffer.from([2, 0, 0, body.length]), body]);
  return Buffer.concat([Buffer.from([0x16, 3, 2, 0, hello.length]), hello]);
}

const PEERS = [
  [
    'speaks TLS 1.1',
    'tls_error',
    'no_common_protocol',
    (socket) => socket.once('data', () => socket.write(helloOfTls11())),
  ],
  [
    'refuses our TLS versions',
    'tls_error',
    'no_common_protocol',
    (socket) => socket.write(Buffer.from([0x15, 3, 1, 0, 2, 2, 70])),
  ],
  [
    'accepts none of our ciphers',
    'tls_error',
    'no_common_protocol',
    (socket) => socket.write(Buffer.from([0x15, 3, 3, 0, 2, 2, 40])),
  ],
  [
    'fails in the handshake',
    'tls_error',
    'handshake_failed',
    (socket) => socket.write(Buffer.from([0x15, 3, 3, 0, 2, 2, 80])),
  ],
  ['speaks plain HTTP', 'tls_error', 'not_tls', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
  [
    'closes during the handshake',
    'connect_error',
    'reset',
    (socket) => socket.once('data', () => socket.end()),
  ],
  [
    'resets during the handshake',
    'connect_error',
    'reset',
    (socket) => socket.once('data', () => socket.destroy()),
  ],
  ['never speaks TLS', 'timeout', 'timed_out', () => undefined],
] as const satisfies readonly (readonly [
  string,
  string,
  FailureReason,
  Parameters<typeof withListener>[0],
])[];

for (const [what, errorCategory, reason, onSocket] of PEERS) {
  test(`a peer that ${what} is ${errorCategory} (${reason}) in phase tls`, async () => {
    await withListener(onSocket, async ({ port, open }) => {
      await inLab({}, async ({ send }) => {
        const timeoutMs = errorCategory === 'timeout' ? 3000 : 30_000;
        const report = await send({ url: `https://target.test:${port}/`, timeoutMs });
        assertUnsent(report, { errorCategory, reason, phase: 'tls', address: '127.0.0.1' });
        assert.equal(report.timings.tlsMs, null);
        assert.equal(report.tlsVersion, null);
        assert.notEqual(report.timings.connectMs, null);
      });
      await until(() => open() === 0);
    });
  });
}

test('a closed port is connect_error', async () => {
  let closed = 0;
  await withListener(
    () => undefined,
    async ({ port }) => {
      closed = port;
    },
  );
  await inLab({}, async ({ send }) => {
    const report = await send({ url: `https://target.test:${closed}/` });
    assertUnsent(report, {
      errorCategory: 'connect_error',
      reason: 'connection_refused',
      phase: 'connect',
      address: '127.0.0.1',
    });
    assert.equal(report.timings.connectMs, null);
  });
});

const LOOKUPS = [
  ['that does not exist', { rcode: 'NXDOMAIN' }, 'dns_error', 'name_not_found'],
  ['without an address', [], 'dns_error', 'name_not_found'],
  // Deno reports it like a name that does not exist.
  [
    'whose server fails',
    { rcode: 'SERVFAIL' },
    'dns_error',
    runtimeName === 'deno' ? 'name_not_found' : 'dns_failed',
  ],
  ['whose server is silent', { drop: true }, 'timeout', 'timed_out'],
  ['with a late answer', { addresses: ['127.0.0.1'], delayMs: 3000 }, 'timeout', 'timed_out'],
  ['with a private answer', ['10.0.0.1'], 'target_refused', 'not_permitted'],
  [
    'with one private answer among public ones',
    ['93.184.215.14', '10.0.0.1'],
    'target_refused',
    'not_permitted',
  ],
] as const;

for (const [what, answer, errorCategory, reason] of LOOKUPS) {
  test(`a name ${what} is ${errorCategory} in phase dns, without a connection`, async () => {
    await inLab({ answers: { 'target.test': answer } }, async ({ send, target }) => {
      const report = await send({ timeoutMs: errorCategory === 'timeout' ? 600 : 30_000 });
      assertUnsent(report, { errorCategory, reason, phase: 'dns', address: null });
      assert.notEqual(report.timings.dnsMs, null);
      assert.equal(report.exempted, false);
      assert.equal(target.connections(), 0);
    });
  });
}

test('one time limit covers all phases', async () => {
  const answers = { 'target.test': { addresses: ['127.0.0.1'], delayMs: 900 } };
  await inLab({ answers, handler: () => undefined }, async ({ send }) => {
    const report = await send({ timeoutMs: 4000 });
    assert.equal(report.errorCategory, 'timeout');
    assert.equal(report.phase, 'headers');
    assert.ok(report.timings.totalMs < 4800, `${report.timings.totalMs}`);
  });
});

test('what arrives after the time limit is not read, in any phase, and ends the attempt before its timer does', async () => {
  let skippedMs = 0;
  const skip = () => {
    skippedMs += 60_000;
  };
  let headRead = () => {};
  const skipping = {
    monotonic: () => performance.now() + skippedMs,
    now() {
      headRead();
      return Date.now();
    },
  };
  await inLab({}, async ({ target }) => {
    const outbound = outboundWith({ resolver: { resolve: bug }, caPem: target.caPem, clock: skipping });
    const begun = performance.now();
    const send = async (port: number) => {
      const request = requestTo(`https://127.0.0.1:${port}/`, { timeoutMs: 12_000 });
      const { errorCategory, phase, status, responseBytes } = await outbound.send(request);
      return { errorCategory, phase, status, responseBytes };
    };
    const greet = (socket: Socket) => {
      skip();
      socket.write('\x16');
    };
    await withListener(greet, async ({ port }) => {
      const none = { errorCategory: 'timeout', status: null, responseBytes: null };
      assert.deepEqual(await send(port), { ...none, phase: 'tls' });
      target.answer(() => {
        skip();
        return { body: 'all of it' };
      });
      assert.deepEqual(await send(target.port), { ...none, phase: 'headers' });
    });
    target.answer((_request, socket) => {
      headRead = () => {
        skip();
        socket.write('the rest');
      };
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nbody');
      return undefined;
    });
    const part = { errorCategory: 'timeout', phase: 'body', status: 200, responseBytes: 4 };
    assert.deepEqual(await send(target.port), part);
    assert.ok(performance.now() - begun < 12_000);
  });
});

test('an address literal is dialled without a look-up and without SNI; its certificate must be valid for the address', async () => {
  await inLab({}, async ({ send, target, dns }) => {
    const report = await send({ url: target.url('/hook', '127.0.0.1') });
    assert.equal(report.errorCategory, null);
    assert.equal(report.timings.dnsMs, null);
    assert.equal(target.requests[0]?.servername, null);
    assert.equal(target.requests[0]?.headers.host, `127.0.0.1:${target.port}`);
    assert.equal(dns.questions.length, 0);
  });
  await inLab({ names: ['target.test'] }, async ({ send, target }) => {
    const report = await send({ url: target.url('/hook', '127.0.0.1') });
    assertUnsent(report, {
      errorCategory: 'tls_error',
      reason: 'name_mismatch',
      phase: 'tls',
      address: '127.0.0.1',
    });
  });
});

test('an IPv6 address is dialled and recorded in its standard text', async () => {
  await inLab({ host: '::1', answers: { 'target.test': ['::1'] } }, async ({ send, target }) => {
    const report = await send();
    assert.equal(report.errorCategory, null);
    assert.equal(report.address, '::1');
    const literal = await send({ url: target.url('/hook', '[::1]') });
    assert.equal(literal.errorCategory, null);
    assert.equal(target.requests[1]?.headers.host, `[::1]:${target.port}`);
  });
});

test('each attempt has exactly one look-up and one connection, which is closed', async () => {
  await inLab({}, async ({ send, target, dns }) => {
    for (let i = 0; i < 3; i++) assert.equal((await send()).errorCategory, null);
    assert.equal(target.connections(), 3);
    assert.deepEqual([dns.asked('target.test', 'A'), dns.asked('target.test', 'AAAA')], [3, 3]);
    await until(() => target.open() === 0);
  });
});

test('extra roots of two issuers are all trusted', async () => {
  const other = await startTlsTarget();
  try {
    await inLab({}, async ({ target, dns }) => {
      const resolver = dnsResolver({ servers: [dns.address], maxInFlight: 4 });
      const outbound = outboundWith({ resolver, caPem: `# two\n${target.caPem}\n${other.caPem}` });
      assert.equal((await outbound.send(requestTo(target.url()))).errorCategory, null);
      assert.equal((await outbound.send(requestTo(other.url()))).errorCategory, null);
      const none = outboundWith({ resolver, caPem: null });
      assert.equal((await none.send(requestTo(target.url()))).errorCategory, 'tls_error');
    });
  } finally {
    await other.close();
  }
});

test('an exempted address is reported as exempted; a blocked range without exemption is refused', async () => {
  await inLab({ allow: cidrs('127.0.0.1/32') }, async ({ send, dns }) => {
    assert.equal((await send()).exempted, true);
    dns.set('target.test', ['127.0.0.2']);
    assert.equal((await send()).errorCategory, 'target_refused');
  });
});

test('a target that the rules no longer permit is refused before its name is looked up', async () => {
  await inLab({}, async ({ dns, target, outbound, send }) => {
    const { url } = target;
    const refused = await outbound.send(requestTo(url(), { target: notPermitted(url()) }));
    assert.deepEqual(
      [refused.errorCategory, refused.phase, refused.sent, refused.address],
      ['target_refused', 'dns', 'no', null],
    );
    assert.deepEqual([dns.questions.length, target.connections()], [0, 0]);
    assert.equal((await send()).errorCategory, null);
  });
});

/** As in a job that was accepted under earlier rules. */
const notPermitted = (url: string) => ({ ...targetOf(url), hostname: 'relay.example.com' });

// ── defects of this program ─────────────────────────────────────────────────────────────────────────────

const isDefect = (sent: Sent, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OutboundDefect && error.cause instanceof TypeError);
  assert.match(error.cause.message, message);
  assert.equal(error.sent, sent);
  return true;
};
const bug = () => {
  throw new TypeError('a bug');
};

test('a request that cannot be written is a defect, and nothing is sent', async () => {
  await inLab({}, async ({ target, send }) => {
    await assert.rejects(
      send({ headers: [['no token', '1']] }),
      isDefect('no', /a header cannot be written/),
    );
    assert.equal(target.requests.length, 0);
  });
});

test('a defect while the connection is made, or while the answer is read, is no outcome of the target', async () => {
  await inLab({}, async ({ target }) => {
    const outbound = (changes: object) =>
      outboundWith({ resolver: { resolve: bug }, caPem: target.caPem, ...changes });
    const request = requestTo(target.url('/hook', '127.0.0.1'));
    await assert.rejects(outbound({}).send(requestTo(target.url())), isDefect('no', /a bug/));
    for (const failing of [1, 2]) {
      let laps = 0;
      const isLap = () => new Error('here').stack?.includes('lap') === true;
      const monotonic = () => (isLap() && ++laps === failing ? bug() : performance.now());
      await assert.rejects(
        outbound({ clock: { ...clock, monotonic } }).send(request),
        isDefect('no', /a bug/),
      );
    }
    assert.equal(target.requests.length, 0);
    const reading = outbound({ clock: { ...clock, now: bug } });
    target.answer(() => ({ headers: { 'retry-after': '1' } }));
    await assert.rejects(reading.send(request), isDefect('yes', /a bug/));
    await until(() => target.open() === 0);
  });
});
