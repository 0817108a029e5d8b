import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson, hasLoneSurrogate, type Json, sameJson } from '#src/domain/canonical-json.ts';
import { utf8 } from '#src/domain/encoding.ts';

test('RFC 8785 §3.2.2: the example of primitive types', () => {
  const text =
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
    '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
  const expected =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
  assert.equal(canonicalJson(JSON.parse(text)), expected);
  // §3.2.4: the same in bytes
  const hex =
    '7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e333333' +
    '333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e41274' +
    '25c225c5c5c5c5c222f227d';
  assert.equal(Buffer.from(utf8(expected)).toString('hex'), hex);
});

test('RFC 8785 §3.2.3: names are sorted by UTF-16 code units', () => {
  const value = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  const names = Object.keys(JSON.parse(canonicalJson(value)));
  const order = [...canonicalJson(value).matchAll(/:"([A-Z][a-z]+)/g)].map(([, word]) => word);
  assert.deepEqual(order, ['Carriage', 'One', 'Control', 'Latin', 'Euro', 'Emoji', 'Hebrew']);
  assert.equal(names.length, 7);
});

test('names that JavaScript puts first, whatever the order of their creation, are in order, too', () => {
  const text = '{"10":1,"9":{"__proto__":2,"b":3},"[":4,"a\\\\ud800":5}';
  assert.equal(canonicalJson(JSON.parse(text)), text);
  assert.equal(canonicalJson([{ '9': 1, '10': 2 }]), '[{"10":2,"9":1}]');
});

/** RFC 8785 appendix B: IEEE 754 bits and their text. */
const NUMBERS = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
] as const;

test('RFC 8785 appendix B: every number', () => {
  for (const [bits, text] of NUMBERS) {
    assert.equal(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE(0)), text, bits);
  }
});

test('what I-JSON cannot hold is a TypeError: NaN, infinities, lone surrogates, undefined, bigint', () => {
  const bad = [
    Number.NaN,
    Infinity,
    -Infinity,
    '\ud800',
    '\udc00',
    'a\udc00\ud800',
    { '\ud800': 1 },
    [undefined],
    { a: undefined },
    { a: 1n },
    { a: () => 1 },
  ];
  for (const value of bad) assert.throws(() => canonicalJson(value as unknown as Json), TypeError);
});

test('the order of names and white space do not matter, and the text parses to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const text = JSON.stringify(value);
      const reversed = JSON.parse(text, (_, v) =>
        v !== null && typeof v === 'object' && !Array.isArray(v)
          ? Object.fromEntries(Object.entries(v).reverse())
          : v,
      );
      const canonical = canonicalJson(JSON.parse(text));
      assert.equal(canonicalJson(reversed), canonical);
      assert.deepEqual(JSON.parse(canonical), JSON.parse(text));
    }),
  );
});

test('hasLoneSurrogate is true exactly if UTF-8 cannot encode the text', () => {
  const unit = fc.constantFrom('a', '\ud800', '\udbff', '\udc00', '\udfff', '😀');
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 6 }), (text) => {
      assert.equal(hasLoneSurrogate(text), new TextDecoder().decode(utf8(text)) !== text);
    }),
  );
});

test('JSON values are the same whatever the order of their members, and differ by any other difference', () => {
  assert.ok(sameJson({ a: 1, b: [2, { c: null }] }, { b: [2, { c: null }], a: 1 }));
  for (const [a, b] of [
    [{ a: 1 }, { a: 1, b: null }],
    [{ a: undefined }, { b: undefined }],
    [
      [1, 2],
      [2, 1],
    ],
    [[], {}],
    [null, {}],
    [1, '1'],
    [{ a: [1] }, { a: { 0: 1 } }],
  ])
    assert.deepEqual([sameJson(a, b), sameJson(b, a)], [false, false]);
});
