// Responses of the target, and the attempt's report about them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { FailureReason } from '#src/domain/failure-reasons.ts';
import type { AttemptReport } from '#src/ports/outbound.ts';
import type { Handler, TlsTarget } from '#test/support/process/tls-target.ts';
import { inLab, withListener } from './lab.ts';

const sha256 = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex');

/** Writes `text` unchanged and ends the connection. */
function raw(text: string): Handler {
  return (_request, socket) => {
    // Deno's server does not close a connection that is ended with zero bytes.
    if (text === '') socket.end();
    else socket.end(Buffer.from(text, 'latin1'));
    return undefined;
  };
}

/** Writes the results of `next` until the connection ends. */
function forever(socket: TLSSocket, first: string, next: () => string, everyMs: number): undefined {
  socket.write(first);
  const timer = setInterval(() => socket.write(next()), everyMs);
  socket.once('close', () => clearInterval(timer));
  return undefined;
}

type Ended = Pick<AttemptReport, 'errorCategory' | 'status' | 'phase' | 'sent'>;

function ended(report: AttemptReport): Ended {
  const { errorCategory, status, phase, sent } = report;
  return { errorCategory, status, phase, sent };
}

test('a complete 2xx response is a success, reported with every detail of the connection', async () => {
  await inLab({ handler: () => ({ status: 201, body: 'hello' }) }, async ({ send, target }) => {
    const report = await send();
    assert.deepEqual(ended(report), { errorCategory: null, status: 201, phase: 'body', sent: 'yes' });
    assert.equal(report.responseBytes, 5);
    assert.equal(report.responseBodySha256, sha256('hello'));
    assert.equal(report.truncated, false);
    assert.equal(report.tlsVersion, 'TLSv1.3');
    assert.equal(report.address, '127.0.0.1');
    assert.equal(report.exempted, true);
    assert.match(report.leafSha256 ?? '', /^[0-9a-f]{64}$/);
    assert.equal(report.abort, false);
    assert.equal(report.retryAfterMs, null);
    const { dnsMs, connectMs, tlsMs, ttfbMs, totalMs } = report.timings;
    const parts = [dnsMs, connectMs, tlsMs, ttfbMs];
    assert.ok(parts.every((ms) => ms !== null && ms >= 0));
    assert.ok(totalMs + 0.1 >= parts.reduce<number>((sum, ms) => sum + (ms ?? 0), 0));
    const [request] = target.requests;
    assert.equal(request?.servername, 'target.test');
    assert.equal(request?.headers.host, `target.test:${target.port}`);
    assert.equal(request?.headers['content-length'], '7');
    assert.equal(request?.headers.connection, 'close');
    assert.equal(request?.body.toString(), '{"a":1}');
  });
});

describe('the response is kept for a caller that gets it, and for no other', () => {
  const LIMIT = 64 * 1024;
  const pieces =
    (size: number): Handler =>
    (_request, socket) => {
      const bytes = Buffer.from(Array.from({ length: LIMIT + 1000 }, (_, n) => n % 251));
      socket.write(
        'HTTP/1.1 503 Busy\r\nContent-Type: a/b\r\nLOCATION: /1\r\nRetry-After: 9\r\nlocation: /2\r\nX-Other: 1\r\n\r\n',
      );
      for (let at = 0; at < bytes.length; at += size) socket.write(bytes.subarray(at, at + size));
      socket.end();
      return undefined;
    };

  for (const size of [97, 5000, 1_000_000])
    test(`in pieces of ${size} bytes: the bytes that were hashed, up to the limit, and the headers that are kept`, async () => {
      await inLab({ handler: pieces(size) }, async ({ send }) => {
        const { response, responseBytes, responseBodySha256, truncated } = await send({
          keepsResponse: true,
        });
        assert.deepEqual(
          [response?.status, response?.headers],
          [503, { 'content-type': 'a/b', location: '/1', 'retry-after': '9' }],
        );
        assert.deepEqual(
          [responseBytes, response?.body.length, truncated, response?.truncated],
          [LIMIT, LIMIT, true, true],
        );
        assert.equal(sha256(response?.body ?? ''), responseBodySha256);
      });
    });

  test('none is kept unless it is asked for, and none arrived: null', async () => {
    await inLab({ handler: pieces(5000) }, async ({ send }) => assert.equal((await send()).response, null));
    await inLab({ handler: raw('') }, async ({ send }) =>
      assert.equal((await send({ keepsResponse: true })).response, null),
    );
  });

  test('a response that is cut: what was read, and its hash', async () => {
    const cut = raw('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf');
    await inLab({ handler: cut }, async ({ send }) => {
      const { errorCategory, response, responseBodySha256 } = await send({ keepsResponse: true });
      assert.deepEqual(
        [errorCategory, Buffer.from(response?.body ?? []).toString()],
        ['truncated_response', 'half'],
      );
      assert.deepEqual([responseBodySha256, response?.headers], [sha256('half'), {}]);
    });
  });
});

const STATUSES: readonly (readonly [number, Ended['errorCategory']])[] = [
  [200, null],
  [204, null],
  [299, null],
  [301, 'target_redirect'],
  [304, 'target_redirect'],
  [400, 'target_client_error'],
  [404, 'target_client_error'],
  [408, 'target_client_error'],
  [410, 'target_client_error'],
  [429, 'target_rate_limited'],
  [500, 'target_server_error'],
  [503, 'target_server_error'],
  [999, 'protocol_error'],
];

for (const [status, errorCategory] of STATUSES) {
  test(`a response with ${status} is ${errorCategory ?? 'a success'}`, async () => {
    await inLab(
      { handler: () => ({ status, body: status === 204 || status === 304 ? '' : 'x' }) },
      async (lab) => {
        assert.deepEqual(ended(await lab.send()), { errorCategory, status, phase: 'body', sent: 'yes' });
      },
    );
  });
}

test('a redirect is not followed', async () => {
  await inLab({}, async ({ target, send }) => {
    target.answer(() => ({ status: 307, headers: { location: target.url('/elsewhere') } }));
    assert.equal((await send()).errorCategory, 'target_redirect');
    assert.deepEqual(
      target.requests.map((request) => request.path),
      ['/hook'],
    );
    assert.equal(target.connections(), 1);
  });
});

test('103, then 200 is a success, with sent: yes', async () => {
  const text = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';
  await inLab({ handler: raw(text) }, async ({ send }) => {
    const report = await send();
    assert.deepEqual(ended(report), { errorCategory: null, status: 200, phase: 'body', sent: 'yes' });
    assert.equal(report.responseBodySha256, sha256('hi'));
  });
});

test('103 without a final response is a timeout, with sent: yes', async () => {
  const handler: Handler = (_request, socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\n\r\n');
    return undefined;
  };
  await inLab({ handler }, async ({ send }) => {
    const report = await send({ timeoutMs: 2500 });
    assert.deepEqual(ended(report), {
      errorCategory: 'timeout',
      status: null,
      phase: 'headers',
      sent: 'yes',
    });
    assert.equal(report.responseBytes, null);
  });
});

const BROKEN: readonly (readonly [string, string, Ended])[] = [
  [
    '101',
    'HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
    protocol(101, 'headers'),
  ],
  [
    'CL + TE',
    'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    protocol(),
  ],
  [
    'chunked twice',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n',
    protocol(),
  ],
  ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n', protocol()],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!', protocol()],
  ['a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nhi', protocol()],
  ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n', protocol()],
  ['an HTTP/2 preface', '\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80', protocol()],
  ['a status of five digits', 'HTTP/1.1 20000 OK\r\n\r\n', protocol()],
  ['bare line feeds', 'HTTP/1.1 200 OK\ncontent-length: 2\n\nhi', protocol()],
  ['a NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\nhi', protocol()],
  [
    'a bad chunk',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n',
    { errorCategory: 'protocol_error', status: 200, phase: 'body', sent: 'yes' },
  ],
  ['a body cut short of its length', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhi', truncated(200)],
  ['a cut chunked body', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhi', truncated(200)],
  [
    'a missing last chunk',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n',
    truncated(200),
  ],
  ['a cut head', 'HTTP/1.1 200 OK\r\ncontent-le', truncated(null)],
  ['no answer at all', '', truncated(null)],
];

function protocol(status: number | null = null, phase: Ended['phase'] = 'headers'): Ended {
  return { errorCategory: 'protocol_error', status, phase, sent: status === null ? 'maybe' : 'yes' };
}

function truncated(status: number | null): Ended {
  return status === null
    ? { errorCategory: 'truncated_response', status, phase: 'headers', sent: 'maybe' }
    : { errorCategory: 'truncated_response', status, phase: 'body', sent: 'yes' };
}

for (const [what, text, expected] of BROKEN) {
  test(`${what} is ${expected.errorCategory}`, async () => {
    await inLab({ handler: raw(text) }, async ({ send }) => assert.deepEqual(ended(await send()), expected));
  });
}

const REASONS: readonly (readonly [string, FailureReason])[] = [
  ['HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n', 'http_status'],
  ['HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n', 'http_status'],
  ['HTTP/1.1 101 Switching\r\n\r\n', 'protocol_switched'],
  ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\n 2\r\n\r\n', 'malformed_response'],
  [`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(17_000)}\r\n\r\n`, 'response_head_too_large'],
  ['HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhi', 'closed_early'],
];

for (const [text, reason] of REASONS) {
  test(`${JSON.stringify(text.slice(0, 50))} fails with the reason ${reason}`, async () => {
    await inLab({ handler: raw(text) }, async ({ send }) => assert.equal((await send()).reason, reason));
  });
}

test('a folded header line is read as one line, and the response is a success', async () => {
  const text = 'HTTP/1.1 200 OK\r\nx-note: a\r\n b\r\ncontent-length: 2\r\n\r\nhi';
  await inLab({ handler: raw(text) }, async ({ send }) => {
    const report = await send();
    assert.deepEqual([report.errorCategory, report.reason, report.responseBytes], [null, null, 2]);
  });
});

test('the received part of a truncated body is counted and hashed', async () => {
  await inLab({ handler: raw('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhi') }, async ({ send }) => {
    const report = await send();
    assert.equal(report.responseBytes, 2);
    assert.equal(report.responseBodySha256, sha256('hi'));
    assert.equal(report.truncated, false);
  });
});

test('a body without a length ends with the connection, and is a success if the target closes TLS', async () => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    await inLab(
      { handler: raw('HTTP/1.1 200 OK\r\n\r\nto the end'), tls: { maxVersion } },
      async ({ send }) => {
        const reports = await Promise.all(Array.from({ length: 20 }, () => send()));
        for (const report of reports) {
          assert.deepEqual([report.errorCategory, report.truncated], [null, false]);
          assert.equal(report.responseBodySha256, sha256('to the end'));
        }
      },
    );
  }
});

/** Of the first TLS record. */
const recordEnd = (bytes: Buffer) =>
  bytes.length < 5 ? Number.POSITIVE_INFINITY : 5 + bytes.readUInt16BE(3);

/** Passes everything on but the target's close_notify, then ends the connection as it does. */
function withoutClose(target: TlsTarget): (client: Socket) => void {
  return (client) => {
    const upstream = connect(target.port, '127.0.0.1').on('error', () => undefined);
    client.on('data', (bytes) => upstream.write(bytes));
    client.once('close', () => upstream.destroy());
    let left = Buffer.alloc(0);
    upstream.on('data', (bytes: Buffer) => {
      left = Buffer.concat([left, bytes]);
      for (let end = recordEnd(left); end <= left.length; end = recordEnd(left)) {
        const record = left.subarray(0, end);
        left = left.subarray(end);
        // An alert; in TLS 1.3 its record looks like one of data, of two bytes.
        if (record[0] !== 21 && record.length !== 5 + 19) client.write(record);
      }
    });
    upstream.once('end', () => client.end());
  };
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${maxVersion}: where the connection ends without the target’s close_notify, it is unknown whether a body without a length is complete`, async () => {
    const answers = (head: string) => raw(`HTTP/1.1 200 OK\r\n${head}\r\n${'b'.repeat(100)}`);
    await inLab({ handler: answers(''), tls: { maxVersion } }, async ({ send, target }) => {
      await withListener(withoutClose(target), async ({ port }) => {
        const url = `https://target.test:${port}/`;
        const report = await send({ url });
        assert.deepEqual([report.errorCategory, report.truncated], [null, 'unknown']);
        assert.deepEqual([report.responseBytes, report.status], [100, 200]);
        target.answer(answers('content-length: 100\r\n'));
        assert.equal((await send({ url })).truncated, false);
        target.answer(answers('content-length: 101\r\n'));
        assert.equal((await send({ url })).errorCategory, 'truncated_response');
      });
    });
  });
}

for (const more of ['MORE', 'HTTP/1.1 500 No\r\n\r\n']) {
  test(`bytes after a complete response have no effect: ${JSON.stringify(more)}`, async () => {
    const handler = raw(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi${more}`);
    await inLab({ handler }, async ({ send }) => {
      const report = await send();
      assert.deepEqual(ended(report), { errorCategory: null, status: 200, phase: 'body', sent: 'yes' });
      assert.equal(report.responseBodySha256, sha256('hi'));
    });
  });
}

test('an endless body is read up to the limit', async () => {
  const block = 'a'.repeat(64 * 1024);
  let written = 0;
  const handler: Handler = (_request, socket) => {
    const more = () => {
      while (!socket.destroyed && written < 2 ** 30) {
        written += block.length;
        if (!socket.write(block)) return void socket.once('drain', more);
      }
    };
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 ** 30}\r\n\r\n`);
    more();
    return undefined;
  };
  await inLab({ handler }, async ({ send }) => {
    const report = await send();
    assert.deepEqual(ended(report), { errorCategory: null, status: 200, phase: 'body', sent: 'yes' });
    assert.equal(report.truncated, true);
    assert.equal(report.responseBytes, 65_536);
    assert.equal(report.responseBodySha256, sha256(block));
  });
  assert.ok(written < 64 * 2 ** 20, `${written} bytes were written`);
});

test('a body of exactly the limit is complete; one byte more is truncated', async () => {
  const body = 'b'.repeat(65_536);
  await inLab({ handler: () => ({ body }) }, async ({ send, target }) => {
    const whole = await send();
    assert.deepEqual([whole.truncated, whole.responseBytes], [false, 65_536]);
    target.answer(() => ({ body: `${body}c` }));
    const cut = await send();
    assert.deepEqual([cut.truncated, cut.responseBytes, cut.errorCategory], [true, 65_536, null]);
    assert.equal(cut.responseBodySha256, sha256(body));
  });
});

test('a body of 64 KiB in chunks of one byte is complete', async () => {
  const chunks = '1\r\nz\r\n'.repeat(65_536);
  const handler = raw(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
  await inLab({ handler }, async ({ send }) => {
    const report = await send();
    assert.deepEqual([report.errorCategory, report.truncated], [null, false]);
    assert.equal(report.responseBodySha256, sha256('z'.repeat(65_536)));
  });
});

test('a body whose bytes are TLS records of their own is a protocol_error after a bounded number of them', async () => {
  let records = 0;
  const handler: Handler = (_request, socket) => {
    const more = () => {
      if (socket.destroyed || ++records === 50_000) return;
      socket.write('a', more);
    };
    socket.setNoDelay(true);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n', more);
    return undefined;
  };
  await inLab({ handler }, async ({ send }) => {
    const report = await send({ timeoutMs: 12_000 });
    assert.equal(report.errorCategory, 'protocol_error');
    const bytes = report.responseBytes ?? 0;
    assert.ok(bytes > 15_000 && bytes <= (512 * 1024) / 22, `${bytes} bytes`);
  });
});

describe('an answer that arrives while the request is still being sent', () => {
  // More than the kernel takes from a sender whose peer reads nothing.
  const body = new Uint8Array(32 * 1024 * 1024);
  const answering = (answer: string) => (socket: Socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write(answer);
    });
  };

  test('a success is a protocol_error: no request was there to be carried out', async () => {
    await inLab({}, async ({ send, target }) => {
      target.onSecure(answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'));
      const report = await send({ body });
      assert.deepEqual([report.errorCategory, report.sent, report.status], ['protocol_error', 'maybe', null]);
    });
  });

  test('a refusal is the answer (RFC 9112 9.5), with its status and Retry-After', async () => {
    await inLab({}, async ({ send, target }) => {
      target.onSecure(
        answering(
          'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno',
        ),
      );
      const report = await send({ body });
      assert.deepEqual(
        [report.errorCategory, report.sent, report.status, report.retryAfterMs],
        ['target_rate_limited', 'yes', 429, 7000],
      );
    });
  });
});

test('an answer that arrives together with the end of the handshake is a protocol_error', async () => {
  const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';
  await inLab({ tls: { maxVersion: 'TLSv1.2' } }, async ({ send, target }) => {
    target.onSecure((socket) => socket.write(answer));
    // Passes on what the target wrote when it has been silent for a while: its Finished and the answer at once.
    const together = (client: Socket) => {
      const upstream = connect(target.port, '127.0.0.1').on('error', () => undefined);
      let bytes = Buffer.alloc(0);
      let timer: NodeJS.Timeout | undefined;
      client.on('data', (more) => upstream.write(more));
      client.once('close', () => upstream.destroy());
      upstream.on('data', (more: Buffer) => {
        bytes = Buffer.concat([bytes, more]);
        clearTimeout(timer);
        timer = setTimeout(() => {
          client.write(bytes);
          bytes = Buffer.alloc(0);
        }, 100);
      });
    };
    await withListener(together, async ({ port }) => {
      const report = await send({ url: `https://target.test:${port}/` });
      assert.deepEqual(ended(report), {
        errorCategory: 'protocol_error',
        status: null,
        phase: 'headers',
        sent: 'maybe',
      });
    });
  });
});

test('a compressed body is hashed as received, never decompressed', async () => {
  const bomb = Buffer.from('H4sIAAAAAAAAA+3BMQEAAADCoPVPbQwfoAAAAAAAAAAAAAAAAAAAAIC3AYbSVKsAQAAA', 'base64');
  await inLab(
    { handler: () => ({ headers: { 'content-encoding': 'gzip' }, body: bomb }) },
    async ({ send }) => {
      const report = await send();
      assert.equal(report.responseBytes, bomb.length);
      assert.equal(report.responseBodySha256, sha256(bomb));
    },
  );
});

test('endless headers are protocol_error long before the time limit', async () => {
  const handler: Handler = (_request, socket) =>
    forever(socket, 'HTTP/1.1 200 OK\r\n', () => `x-more: ${'a'.repeat(2000)}\r\n`, 1);
  await inLab({ handler }, async ({ send }) => {
    assert.deepEqual(ended(await send()), protocol());
  });
});

test('a response head under 16 KiB is accepted', async () => {
  await inLab({ handler: () => ({ headers: { 'x-long': 'a'.repeat(15_000) } }) }, async ({ send }) => {
    assert.equal((await send()).errorCategory, null);
  });
});

test('headers that arrive slowly are a timeout in phase headers', async () => {
  const handler: Handler = (_request, socket) => forever(socket, 'HTTP/1.1 200 OK\r\n', () => 'x: y\r\n', 20);
  await inLab({ handler }, async ({ send }) => {
    const report = await send({ timeoutMs: 2500 });
    assert.deepEqual(ended(report), {
      errorCategory: 'timeout',
      status: null,
      phase: 'headers',
      sent: 'maybe',
    });
    assert.ok(report.timings.totalMs >= 2490);
  });
});

test('a body that arrives slowly is a timeout in phase body, with the status', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\nd';
  await inLab({ handler: (_request, socket) => forever(socket, head, () => 'd', 20) }, async ({ send }) => {
    const report = await send({ timeoutMs: 2500 });
    assert.deepEqual(ended(report), { errorCategory: 'timeout', status: 200, phase: 'body', sent: 'yes' });
    assert.ok((report.responseBytes ?? 0) > 0);
  });
});

test('a target that reads and never responds is a timeout, with sent: maybe', async () => {
  await inLab({ handler: () => undefined }, async ({ send, target }) => {
    const report = await send({ timeoutMs: 2500 });
    assert.deepEqual(ended(report), {
      errorCategory: 'timeout',
      status: null,
      phase: 'headers',
      sent: 'maybe',
    });
    assert.equal(target.requests.length, 1);
  });
});

test('a target that closes the connection on the request is reported with sent: maybe', async () => {
  const handler: Handler = (_request, socket) => {
    socket.destroy();
    return undefined;
  };
  await inLab({ handler }, async ({ send }) => assert.deepEqual(ended(await send()), truncated(null)));
});

test('a connection that is reset within a body without a length cuts it off', async () => {
  let reset = () => {};
  const handler: Handler = (_request, socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\nhalf', () => setTimeout(() => reset(), 100));
    return undefined;
  };
  await inLab({ handler }, async ({ send, target }) => {
    const pass = (client: Socket) => {
      const upstream = connect(Number(new URL(target.url('/')).port), '127.0.0.1');
      client.pipe(upstream).on('error', () => undefined);
      upstream.pipe(client);
      reset = () => {
        client.resetAndDestroy();
        upstream.destroy();
      };
    };
    await withListener(pass, async ({ port }) => {
      const { errorCategory, sent } = await send({ url: `https://target.test:${port}/` });
      assert.deepEqual({ errorCategory, sent }, { errorCategory: 'truncated_response', sent: 'yes' });
    });
  });
});

test('Retry-After in seconds or as a date is recorded in ms', async () => {
  await inLab(
    { handler: () => ({ status: 429, headers: { 'retry-after': '2' } }) },
    async ({ send, target }) => {
      assert.equal((await send()).retryAfterMs, 2000);
      target.answer(() => ({
        status: 503,
        headers: { 'retry-after': new Date(Date.now() + 60_000).toUTCString() },
      }));
      const ms = (await send()).retryAfterMs ?? 0;
      assert.ok(ms > 50_000 && ms <= 60_000, `${ms}`);
      target.answer(() => ({ status: 503, headers: { 'retry-after': 'soon' } }));
      assert.equal((await send()).retryAfterMs, null);
    },
  );
});

test('410 and webhook-delivery: abort-message request no further attempts', async () => {
  await inLab({ handler: () => ({ status: 410 }) }, async ({ send, target }) => {
    assert.equal((await send()).abort, true);
    target.answer(() => ({ status: 503, headers: { 'Webhook-Delivery': 'abort-message' } }));
    assert.equal((await send()).abort, true);
    target.answer(() => ({ status: 503, headers: { 'webhook-delivery': 'retry' } }));
    assert.equal((await send()).abort, false);
  });
});
