import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isExactNumber, parseStrictJson } from '#src/http/request/strict-json.ts';
import { runs } from '#test/support/given/property-runs.ts';

const faultsOf = (text: string) => {
  const parsed = parseStrictJson(text);
  return parsed.outcome === 'faults' ? parsed.faults : parsed.outcome;
};
const pathsOf = (text: string) => {
  const faults = faultsOf(text);
  return Array.isArray(faults) ? faults.map(({ path }) => path) : faults;
};

test('64 levels are read, 65 are not, and 100,000 do not overflow the stack', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  assert.equal(parseStrictJson(nested(64)).outcome, 'value');
  for (const text of [nested(65), nested(100_000), `{"a":1e400,"b":${nested(64)},"c":1}`]) {
    assert.deepEqual(faultsOf(text), [{ path: '', message: 'Nested deeper than 64 levels' }]);
  }
  assert.equal(parseStrictJson('['.repeat(100_000)).outcome, 'syntax');
  assert.equal(parseStrictJson(JSON.stringify({ text: '[{'.repeat(100), other: '\\"[' })).outcome, 'value');
});

test('a number that a double gives back otherwise is refused at its place', () => {
  for (const number of [
    '0',
    '1.0',
    '1e3',
    '0.1',
    '-12.50',
    '9007199254740991',
    '9007199254740992',
    '1E-7',
    '5e-324',
    '1.7976931348623157e308',
    '0e999',
    '100000000000000000000',
  ]) {
    assert.equal(pathsOf(`{"a":[1,${number}]}`), 'value', number);
  }
  for (const number of [
    '-0',
    '-0.0',
    '-0e5',
    '1e400',
    '-1e400',
    '9007199254740993',
    '0.1234567890123456789',
    '1e-400',
    '144115188075855872',
    '1.00000000000000000001',
  ]) {
    assert.deepEqual(pathsOf(`{"a":[1,${number}]}`), ['/a/1'], number);
  }
});

test('a long run of digits is judged in linear time', () => {
  const zeros = '0'.repeat(120_000);
  assert.equal(isExactNumber(`0.${zeros}1`), false);
  assert.equal(isExactNumber(`1.${zeros}`), true);
});

test('half a character is refused in values and in names', () => {
  assert.deepEqual(pathsOf('{"a":{"b":"x\\ud800y"}}'), ['/a/b']);
  assert.deepEqual(pathsOf('["\\udc00\\ud800"]'), ['/0']);
  assert.deepEqual(pathsOf('{"a":[{"\\udfff":1}]}'), ['/a/0']);
  assert.equal(pathsOf('{"\\ud83d\\ude00":"\\ud83d\\ude00"}'), 'value');
});

test('a name that occurs twice in one object is refused, however it is spelled', () => {
  assert.deepEqual(pathsOf('{"a":1,"b":{"c":1,"\\u0063":2}}'), ['/b/c']);
  assert.deepEqual(pathsOf('{"x/y~":1,"x/y~":2}'), ['/x~1y~0']);
  assert.deepEqual(pathsOf('{"__proto__":1,"__proto__":2}'), ['/__proto__']);
  assert.equal(pathsOf('[{"a":1},{"a":1},{"b":{"a":1},"a":2}]'), 'value');
});

test('__proto__ is a name like any other', () => {
  const parsed = parseStrictJson('{"__proto__":{"url":"x"},"constructor":1}');
  assert.equal(parsed.outcome, 'value');
  const value = parsed.outcome === 'value' ? (parsed.value as object) : {};
  assert.deepEqual(Object.keys(value), ['__proto__', 'constructor']);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal('url' in value, false);
});

test('property: a number is refused if and only if a double gives it back otherwise', () => {
  const digits = fc.stringMatching(/^\d{1,20}$/);
  const exponent = fc.constantFrom('', 'e0', 'e5', 'E-7', 'e+22', 'e-320');
  fc.assert(
    fc.property(digits, fc.option(digits), exponent, (whole, fraction, power) => {
      const number = `${whole.replace(/^0+(?=\d)/, '')}${fraction === null ? '' : `.${fraction}`}${power}`;
      const exact = (text: string) => {
        const [, int = '', frac = '', exp = '0'] = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
        return BigInt(int + frac) * 10n ** BigInt(400 + Number(exp) - frac.length);
      };
      const isExact = exact(number) === exact(String(Number(number)));
      assert.equal(parseStrictJson(number).outcome, isExact ? 'value' : 'faults', number);
    }),
    { numRuns: runs(2000) },
  );
});

test('what is no JSON is a syntax error', () => {
  for (const text of ['', '{', '[1,]', '"\\x"', "{'a':1}", '01', 'NaN', '{"a":1}}', '"\u0001"', '[1] []']) {
    assert.equal(parseStrictJson(text).outcome, 'syntax', text);
  }
});

test('any JSON that a runtime writes is read as the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      const parsed = parseStrictJson(text);
      assert.equal(parsed.outcome, 'value', text);
      assert.deepEqual(parsed.outcome === 'value' && parsed.value, JSON.parse(text));
    }),
  );
});

test('any text is read, faulted or called a syntax error, never thrown at', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '"a"',
    '1',
    '-',
    '1e999',
    'null',
    '\\ud800',
    ' ',
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
      const text = tokens.join('');
      const { outcome } = parseStrictJson(text);
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      assert.equal(outcome === 'syntax', !valid, text);
    }),
  );
});

test('a name with escapes is the one that is written, whatever stood there in an earlier text', () => {
  const parsed = (text: string) => {
    const strict = parseStrictJson(text);
    assert.equal(strict.outcome, 'value');
    return strict.outcome === 'value' ? strict.value : null;
  };
  parsed('{"body":{"channelq":1,"\\\\u044":2}}');
  const other = parsed('{"body":{"channelq":1,"\\u0442\\u0435":"hi"}}');
  assert.deepEqual(other, { body: { channelq: 1, те: 'hi' } });
  parsed('{"k":1,"\\\\":2}');
  assert.deepEqual(parsed('{"k":1,"\\n":2}'), { k: 1, '\n': 2 });
});

test('texts with escaped names are read as they were written: any value, any spelling', () => {
  const spelled = (value: unknown): string => {
    if (Array.isArray(value)) return `[ ${value.map(spelled).join(' , ')}\n]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    const members = Object.entries(value).map(([name, of]) => `${escaped(name)} :\t${spelled(of)}`);
    return `{ ${members.join(' ,')} }`;
  };
  const escaped = (name: string) => {
    const units = Array.from({ length: name.length }, (_, at) => name.charCodeAt(at));
    return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
  };
  const names = fc.string({ unit: 'grapheme', maxLength: 4 });
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(0, -1.5, 1e3, true, false, null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(names, tie('value'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(value, (given) => {
      const parsed = parseStrictJson(spelled(given));
      assert.equal(parsed.outcome === 'value' && JSON.stringify(parsed.value), JSON.stringify(given));
    }),
    { numRuns: runs(2000) },
  );
});
