import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  concatBytes,
  fromBase64,
  fromBase64url,
  fromUtf8,
  sha256,
  toBase64,
  toBase64url,
  toHex,
  utf8,
} from '#src/domain/encoding.ts';
import { runs } from '#test/support/given/property-runs.ts';

const anyBytes = fc.uint8Array({ maxLength: 40 });

test('utf8: any text, a lone surrogate as U+FFFD; fromUtf8 keeps a byte order mark', () => {
  for (const text of ['', '\u007f\u0080\u07ff\u0800\uffff', 'a😀z', '\ufeffbom'])
    assert.equal(fromUtf8(utf8(text)), text);
  assert.equal(fromUtf8(utf8('\ude00a\ud83d')), '\ufffda\ufffd');
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

test('fromBase64url accepts the canonical form only: the form that toBase64url writes', () => {
  const alphabet = 'AQgwZm9v-_+/=.\n \u00e9\u0141'.split('');
  const texts = fc.array(fc.constantFrom(...alphabet), { maxLength: 9 }).map((letters) => letters.join(''));
  fc.assert(
    fc.property(texts, (text) => {
      const bytes = fromBase64url(text);
      if (bytes !== null) assert.equal(toBase64url(bytes), text);
      else assert.notEqual(Buffer.from(text, 'base64url').toString('base64url'), text);
    }),
    { numRuns: runs(5000) },
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

test('base64, base64url and hex: without the native methods, as in older browsers, the same texts and bytes', () => {
  const { toBase64: native, toHex: nativeHex } = Uint8Array.prototype;
  const { fromBase64: nativeFrom } = Uint8Array;
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
  const text = Buffer.from(bytes).toString('base64');
  try {
    Object.assign(Uint8Array.prototype, { toBase64: undefined, toHex: undefined });
    Object.assign(Uint8Array, { fromBase64: undefined });
    assert.equal(toBase64(bytes), text);
    assert.deepEqual(fromBase64(text), bytes);
    for (const bad of ['QR==', 'Q Q=', 'QQ', 'QQ=', '=', 'Q', 'é']) assert.equal(fromBase64(bad), null, bad);
    const urlText = Buffer.from(bytes).toString('base64url');
    assert.equal(toBase64url(bytes), urlText);
    assert.deepEqual(fromBase64url(urlText), bytes);
    for (const bad of ['QR', 'Q Q', 'QQ==', '+_8', 'Q', 'é']) assert.equal(fromBase64url(bad), null, bad);
    assert.equal(toHex(bytes), Buffer.from(bytes).toString('hex'));
  } finally {
    Object.assign(Uint8Array.prototype, { toBase64: native, toHex: nativeHex });
    Object.assign(Uint8Array, { fromBase64: nativeFrom });
  }
});

test('sha256: the vectors of FIPS 180-4', () => {
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  assert.equal(toHex(sha256(new Uint8Array(0))), empty);
  assert.equal(toHex(sha256(utf8('abc'))), abc);
});
