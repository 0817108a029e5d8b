// The response parser: the same result however the bytes are cut, and no second reading of what is ambiguous.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { AttemptFailed } from '#src/adapters/outbound/attempt.ts';
import { BodyHash } from '#src/adapters/outbound/body-hash.ts';
import { ResponseReader } from '#src/adapters/outbound/response-reader.ts';
import { runs } from '#test/support/given/property-runs.ts';

type Read = { readonly statuses: number[]; readonly body: string; readonly complete: boolean };

/** Reads the text in pieces of `size` bytes; throws what the reader throws. */
function read(text: string, size = text.length): Read {
  const statuses: number[] = [];
  let body = '';
  const reader = new ResponseReader({
    head: ({ status }) => void statuses.push(status),
    body(block, start, end) {
      body += block.toString('latin1', start, end);
    },
  });
  const bytes = Buffer.from(text, 'latin1');
  let complete = false;
  for (let at = 0; at < bytes.length; at += size) complete = reader.read(bytes.subarray(at, at + size));
  return { statuses, body, complete: complete || reader.isCompleteAtEnd() };
}

const OK = 'HTTP/1.1 200 OK\r\n';

const WHOLE: readonly (readonly [what: string, text: string, body: string, statuses?: number[]])[] = [
  ['a length', `${OK}content-length: 5\r\n\r\nhello`, 'hello'],
  ['a length of 0', `${OK}Content-Length: 0\r\n\r\nmore`, ''],
  ['chunks', `${OK}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n02 ; x=y\r\nlo\r\n0\r\n\r\nmore`, 'hello'],
  ['trailers', `${OK}Transfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n`, '0123456789'],
  ['the end of the connection', `${OK}\r\nhello`, 'hello'],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nhello', 'hello'],
  ['no reason phrase', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi', 'hi'],
  ['the encoding identity', `${OK}transfer-encoding: identity\r\n\r\nhello`, 'hello'],
  ['a folded header line', `${OK}x: a\r\n b\r\n\t c\r\ncontent-length: 5\r\n\r\nhello`, 'hello'],
  ['a fold of blanks only', `${OK}x: a\r\n \t\r\ncontent-length: 5\r\n\r\nhello`, 'hello'],
  ['a folded trailer', `${OK}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: b\r\n c\r\n\r\n`, 'x'],
  [
    'interim responses',
    `HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\n${OK}\r\nx`,
    'x',
    [100, 103, 200],
  ],
  ['204 with a length', 'HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n', '', [204]],
  ['304 with a length', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', '', [304]],
];

for (const [what, text, body, statuses = [200]] of WHOLE) {
  test(`a response with ${what} is read alike in one piece and byte by byte`, () => {
    for (const size of [text.length, 7, 1])
      assert.deepEqual(read(text, size), { statuses, body, complete: true });
  });
}

test('chunks of one byte are read in place, however many there are: no object for each', () => {
  const body = 'x'.repeat(60_000);
  const chunks = [...body].map((byte) => `1\r\n${byte}\r\n`).join('');
  let objects = 0;
  const counted = (block: Buffer) =>
    Object.assign(block, {
      subarray(start?: number, end?: number) {
        objects += 1;
        return Buffer.prototype.subarray.call(block, start, end);
      },
      toString(encoding?: BufferEncoding, start?: number, end?: number) {
        objects += 1;
        return Buffer.prototype.toString.call(block, encoding, start, end);
      },
    });
  const wire = Buffer.from(`${OK}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
  const hash = new BodyHash();
  const reader = new ResponseReader({ head: () => undefined, body: (...piece) => hash.add(...piece) });
  let complete = false;
  for (let at = 0; at < wire.length; at += 16_384)
    complete = reader.read(counted(wire.subarray(at, at + 16_384)));
  assert.deepEqual([complete, hash.bytes], [true, body.length]);
  assert.equal(hash.digest(), createHash('sha256').update(body).digest('hex'));
  assert.ok(objects < 10, `${objects} strings and slices`);
});

const CUT = [
  'HTTP/1.1 200 O',
  `${OK}content-length: 5\r\n\r\nhell`,
  `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n`,
  'HTTP/1.1 103 Hints\r\n\r\n',
];

for (const text of CUT) {
  test(`a response that ends early is not complete: ${JSON.stringify(text)}`, () => {
    assert.equal(read(text, 3).complete, false);
  });
}

const INVALID = [
  'HTTP/2 200 OK\r\n',
  'HTTP/1.1 99 Few\r\n',
  'HTTP/1.1 000 None\r\n',
  'HTTP/1.1  200 OK\r\n',
  ' HTTP/1.1 200 OK\r\n',
  '\r\nHTTP/1.1 200 OK\r\n',
  `${OK}name : value\r\n`,
  `${OK}name\r\n`,
  `${OK}: value\r\n`,
  `${OK} folded: before any header\r\n\r\n`,
  `${OK}a: b\r\n fol\0ded\r\n`,
  `${OK}content-length: 1\r\n 2\r\n\r\n`,
  `${OK}content-length:\r\n 5\r\n\r\nhello`,
  `${OK}content-length: 5\r\n \r\n\r\nhello`,
  `${OK}transfer-encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n0\r\n folded: trailer\r\n\r\n`,
  `${OK}a: b\r\n c\r\ncontent-length: 5\r\n x\r\n\r\n`,
  `${OK}transfer-encoding: gzip\r\n\r\nhello`,
  `${OK}transfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
  `${OK}transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
  `${OK}transfer-encoding: identity, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
  `${OK}a: b\rc\r\n`,
  `${OK}content-length: 5\r\ncontent-length: 5\r\n`,
  `${OK}content-length: +5\r\n\r\n`,
  `${OK}content-length: 5, 5\r\n\r\n`,
  `${OK}content-length: 0x5\r\n\r\n`,
  `${OK}content-length:\r\n\r\n`,
  `${OK}content-length: ${'9'.repeat(30)}\r\n\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n-1\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n${'f'.repeat(16)}\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n2\r\nhello\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n2\nhi\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1;${'x'.repeat(17_000)}`,
  `${OK}transfer-encoding: chunked\r\n\r\n0\r\n${'x: y\r\n'.repeat(3000)}`,
  `${OK}x: ${'a'.repeat(17_000)}`,
  'HTTP/1.1 100 \r\n\r\n'.repeat(2000),
  `${OK}transfer-encoding: chunked\r\n\r\n${`1;${'x'.repeat(1000)}\r\nx\r\n`.repeat(20)}`,
  `${OK}content-length: 5\xa0\r\n\r\n`,
  `${OK}transfer-encoding: chunked, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
  `${OK}transfer-encoding: chunked\r\ntransfer-encoding: Chunked\r\n\r\n`,
  `${OK}transfer-encoding: chunked, gzip\r\n\r\n`,
  `${OK}transfer-encoding: gzip,,chunked\r\n\r\n`,
  `${OK}transfer-encoding: chunked,\r\n\r\n`,
  `${OK}transfer-encoding:\r\n\r\n`,
  'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  `${OK}transfer-encoding: chunked\r\n\r\n;x\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n 1\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1 1\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n0x1\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1;a\nx\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1;\0\r\nx\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1\rx\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n1\r\nx\n0\r\n`,
  `${OK}transfer-encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n`,
];

for (const text of INVALID) {
  test(`is a protocol error: ${JSON.stringify(text.slice(0, 80))}`, () => {
    for (const size of [text.length, 100])
      assert.throws(
        () => read(text, size),
        (error) => error instanceof AttemptFailed && error.category === 'protocol_error',
      );
  });
}

function headerOf(name: string, lines: string): string | undefined {
  let found: string | undefined;
  const reader = new ResponseReader({
    head({ headers }) {
      found = headers.get(name);
    },
    body: () => undefined,
  });
  reader.read(Buffer.from(`${OK}${lines}\r\n`));
  return found;
}

test('the first of several headers with one name counts', () => {
  assert.equal(headerOf('retry-after', 'Retry-After: 2 \r\nretry-after: 9\r\n'), '2');
});

test('the fold of a header line is a blank (RFC 9112 5.2), and belongs to its own line', () => {
  assert.equal(headerOf('x', 'x: a \r\n  b\r\n\tc\t\r\ny: d\r\n e\r\n'), 'a b c');
  assert.equal(headerOf('x', 'X:\r\n a\r\n'), 'a');
  assert.equal(headerOf('x', 'x: a\r\nx: b\r\n c\r\n'), 'a');
});

test('a head that is too large has a reason of its own', () => {
  for (const text of [`${OK}x: ${'a'.repeat(17_000)}`, `${OK}${'x: y\r\n'.repeat(3000)}`])
    assert.throws(
      () => read(text),
      (error) => error instanceof AttemptFailed && error.reason === 'response_head_too_large',
    );
});

test('a value of many blanks takes linear time', () => {
  const begun = performance.now();
  for (let n = 0; n < 200; n++) assert.throws(() => read(`${OK}x:${' '.repeat(16_000)}\0\r\n`));
  assert.ok(performance.now() - begun < 10_000);
});

// ── any bytes, cut in any way ───────────────────────────────────────────────────────────────────────────

const Token = fc.constantFrom('a', 'x-long-name', 'Content-Type', 'retry-after');
const Text = fc.string({ maxLength: 12 });
const Header = fc
  .tuple(Token, Text)
  .map(([name, value]) => `${name}: ${value.replaceAll(/[^ -~]/g, '')}\r\n`);
const Chunk = fc
  .tuple(fc.string({ minLength: 1, maxLength: 20 }), fc.constantFrom('', ' ', ';', ';x=y', ' ; "q"'))
  .map(([text, extension]) => {
    const bytes = Buffer.from(text, 'utf8').toString('latin1');
    return `${bytes.length.toString(16)}${extension}\r\n${bytes}\r\n`;
  });
const Framed = fc.oneof(
  fc
    .array(Chunk, { maxLength: 8 })
    .map((chunks) => `transfer-encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`),
  Text.map(
    (text) => `content-length: ${Buffer.byteLength(text)}\r\n\r\n${Buffer.from(text).toString('latin1')}`,
  ),
  Text.map((text) => `\r\n${Buffer.from(text).toString('latin1')}`),
);
const Wire = fc
  .tuple(
    fc.constantFrom('', 'HTTP/1.1 103 Early\r\na: b\r\n\r\n'),
    fc.constantFrom(OK, 'HTTP/1.0 404 No\r\n', 'HTTP/1.1 204 None\r\n'),
    fc.array(Header, { maxLength: 4 }),
    Framed,
    fc.constantFrom('', 'more'),
  )
  .map(([interim, status, headers, framed, more]) => interim + status + headers.join('') + framed + more);
/** One byte is another, or missing. */
const Damaged = fc
  .tuple(Wire, fc.nat(400), fc.constantFrom('', '\r', '\n', '\0', '0', ' ', ':', '\xff'))
  .map(([wire, at, byte]) => wire.slice(0, at % wire.length) + byte + wire.slice((at % wire.length) + 1));

/** What the reader makes of the pieces, up to its error. */
function outcome(pieces: readonly Buffer[]): unknown {
  const heads: unknown[] = [];
  const hash = new BodyHash();
  const reader = new ResponseReader({
    head: ({ status, headers }) => void heads.push([status, ...headers]),
    body: (...piece) => hash.add(...piece),
  });
  let end: unknown;
  try {
    for (const piece of pieces) end = reader.read(piece) ? 'complete' : 'open';
    end = end === 'open' && reader.isCompleteAtEnd() ? 'complete at the end' : end;
  } catch (error) {
    end = error instanceof AttemptFailed ? error.category : error;
  }
  return { heads, end, bytes: hash.bytes, sha256: hash.digest() };
}

test('any response, whole or damaged, is read alike however its bytes are cut', () => {
  const property = fc.property(
    fc.oneof(Wire, Damaged),
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }),
    (wire, sizes) => {
      const bytes = Buffer.from(wire, 'latin1');
      const pieces: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = sizes[i % sizes.length] ?? 1;
        pieces.push(bytes.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual(outcome(pieces), outcome([bytes]));
    },
  );
  fc.assert(property, { numRuns: runs(2000) });
});
