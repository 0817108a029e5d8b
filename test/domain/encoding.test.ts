import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { concatBytes, fromBase64url, fromUtf8, toBase64url, toHex, utf8 } from '#src/domain/encoding.ts';

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((c) => String.fromCharCode(c)) });
const anyBytes = fc.uint8Array({ maxLength: 40 });
/** Bytes that look like UTF-8 often enough to reach every branch. */
const nearlyUtf8 = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        0x00,
        0x41,
        0x7f,
        0x80,
        0xbf,
        0xc0,
        0xc1,
        0xc2,
        0xdf,
        0xe0,
        0xa0,
        0x9f,
        0xed,
        0xef,
        0xbb,
        0xf0,
        0x90,
        0x8f,
        0xf4,
        0xf5,
        0xff,
      ),
      fc.nat(255),
    ),
    { maxLength: 12 },
  )
  .map((bytes) => Uint8Array.from(bytes));

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

test('utf8 agrees with TextEncoder on any UTF-16, lone surrogates included', () => {
  fc.assert(
    fc.property(anyText, (text) => assert.deepEqual(utf8(text), new TextEncoder().encode(text))),
    { numRuns: 2000 },
  );
  for (const text of [
    '',
    '\u007f\u0080\u07ff\u0800\uffff',
    '😀',
    '\ud83d',
    '\ude00',
    '\ude00\ud83d',
    'a\ud83d😀\ude00z',
    '\ufeffbom',
  ]) {
    assert.deepEqual(utf8(text), new TextEncoder().encode(text));
  }
});

test('fromUtf8 agrees with a fatal TextDecoder on any bytes, and keeps a byte order mark', () => {
  fc.assert(
    fc.property(nearlyUtf8, (bytes) => assert.equal(fromUtf8(bytes), decode(bytes))),
    { numRuns: 20_000 },
  );
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => assert.equal(fromUtf8(utf8(text)), text)));
});

test('long text goes both ways as the Encoding Standard has it, wherever it leaves ASCII', () => {
  for (const length of [4095, 4096, 4097, 8192, 20_000]) {
    for (const strange of ['', 'ü', '€', '😀', '\u007f']) {
      for (const at of [0, 1, 4094, 4095, 4096, length - 1]) {
        const text = `${'a'.repeat(at)}${strange}${'z'.repeat(Math.max(0, length - at))}`;
        const bytes = new TextEncoder().encode(text);
        assert.deepEqual(utf8(text), bytes);
        assert.equal(fromUtf8(bytes), text);
        assert.deepEqual(fromBase64url(toBase64url(bytes)), bytes);
      }
    }
  }
});

for (const [why, bytes] of [
  ['an overlong slash', [0xc0, 0xaf]],
  ['an overlong three-byte form', [0xe0, 0x9f, 0xbf]],
  ['an overlong four-byte form', [0xf0, 0x8f, 0xbf, 0xbf]],
  ['a surrogate', [0xed, 0xa0, 0x80]],
  ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
  ['a byte F5', [0xf5, 0x80, 0x80, 0x80]],
  ['a tail cut off', [0xe2, 0x82]],
  ['a tail without a head', [0x80]],
  ['a head in the place of a tail', [0xe2, 0x82, 0xc2, 0xa2]],
] as const) {
  test(`fromUtf8 refuses ${why} (RFC 3629)`, () => assert.equal(fromUtf8(Uint8Array.from(bytes)), null));
}

/** RFC 4648 §10, without padding. */
const VECTORS = {
  '': '',
  f: 'Zg',
  fo: 'Zm8',
  foo: 'Zm9v',
  foob: 'Zm9vYg',
  fooba: 'Zm9vYmE',
  foobar: 'Zm9vYmFy',
};

test('base64url: the vectors of RFC 4648 §10, unpadded', () => {
  for (const [text, encoded] of Object.entries(VECTORS)) {
    assert.equal(toBase64url(utf8(text)), encoded);
    assert.deepEqual(fromBase64url(encoded), utf8(text));
  }
  assert.equal(toBase64url(Uint8Array.of(0xfb, 0xff, 0xfe)), '-__-');
});

test('base64url agrees with the runtime both ways', () => {
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      const text = toBase64url(bytes);
      assert.equal(text, Buffer.from(bytes).toString('base64url'));
      assert.deepEqual(fromBase64url(text), Uint8Array.from(bytes));
    }),
  );
});

test('fromBase64url takes the one canonical form only: what it takes, it would write', () => {
  const alphabet = 'AQgwZm9v-_+/=.\n \u00e9\u0141'.split('');
  const texts = fc.array(fc.constantFrom(...alphabet), { maxLength: 9 }).map((letters) => letters.join(''));
  fc.assert(
    fc.property(texts, (text) => {
      const bytes = fromBase64url(text);
      if (bytes !== null) assert.equal(toBase64url(bytes), text);
      else assert.notEqual(Buffer.from(text, 'base64url').toString('base64url'), text);
    }),
    { numRuns: 5000 },
  );
});

for (const text of [
  'Zg==',
  'Zm8=',
  'Zh',
  'Zm9',
  'Z',
  'Zm9vY',
  '+_8',
  '/w',
  'Zm 9v',
  'Zm9v\n',
  'Zm9v.',
  '\u0141g',
]) {
  test(`fromBase64url refuses ${JSON.stringify(text)}`, () => assert.equal(fromBase64url(text), null));
}

test('toHex and concatBytes', () => {
  fc.assert(
    fc.property(fc.array(anyBytes, { maxLength: 4 }), (parts) => {
      const whole = concatBytes(...parts);
      assert.deepEqual(whole, Uint8Array.from(Buffer.concat(parts)));
      assert.equal(toHex(whole), Buffer.from(whole).toString('hex'));
    }),
  );
});
