// The policy file of C2SP tlog-policy: its example, its rules one by one with line and reason, and which sets of witnesses are a
// quorum.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseNote } from '#src/domain/transparency/note.ts';
import {
  cosignaturesOf,
  judgeQuorum,
  parseWitnessPolicy,
  policyProblemText,
  type WitnessPolicy,
} from '#src/domain/transparency/witness-policy.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import { primitives as ed25519 } from '#test/support/given/primitives.ts';
import {
  type C2spKey,
  c2spCheckpointText,
  c2spCosignature,
  c2spKey,
  c2spNote,
  c2spRoot,
} from '#test/support/witness/c2sp.ts';

const primitives = { ...ed25519, mlDsa44Verify };
const log = c2spKey('relay.example/receipts', 1, Buffer.alloc(32, 1));
const keys = Array.from({ length: 6 }, (_, n) => c2spKey(`w${n}.example`, 4, Buffer.alloc(32, 10 + n)));
const key = (n: number): C2spKey => keys[n] ?? assert.fail();

function policyOf(text: string | Uint8Array): WitnessPolicy {
  const { policy, problem } = parseWitnessPolicy(text);
  return policy ?? assert.fail(policyProblemText(problem));
}
const problemOf = (text: string | Uint8Array): string => {
  const { problem } = parseWitnessPolicy(text);
  return policyProblemText(problem ?? assert.fail('a policy'));
};
const met = (policy: WitnessPolicy, ...names: readonly string[]) => judgeQuorum(policy, new Set(names)).met;

/** The example of tlog-policy, with keys. */
const EXAMPLE = `log ${log.vkey}

witness X1 ${key(0).vkey}
witness X2 ${key(1).vkey}
witness X3 ${key(2).vkey}
group X-witnesses 2 X1 X2 X3

witness Y1 ${key(3).vkey}
witness Y2 ${key(4).vkey}
witness Y3 ${key(5).vkey}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`;

describe('the example of the standard', () => {
  const policy = policyOf(EXAMPLE);
  test('names one log and six witnesses without URLs', () => {
    assert.deepEqual(
      policy.logs.map(({ key: { name }, url }) => [name, url]),
      [[log.name, null]],
    );
    assert.deepEqual(
      policy.witnesses.map(({ name, key: { name: keyName }, url }) => [name, keyName, url]),
      ['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3'].map((name, n) => [name, `w${n}.example`, null]),
    );
  });
  test('requires two of X and one of Y', () => {
    for (const names of [
      ['X1', 'X2', 'Y1'],
      ['X2', 'X3', 'Y3'],
      ['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3'],
    ])
      assert.equal(met(policy, ...names), true, names.join());
    for (const names of [[], ['X1', 'X2'], ['X1', 'X2', 'X3'], ['X1', 'Y1', 'Y2', 'Y3'], ['Z', 'X1', 'Y1']])
      assert.equal(met(policy, ...names), false, names.join());
  });
  test('names who has signed and who is missing, in its order', () => {
    assert.deepEqual(judgeQuorum(policy, new Set(['Y2', 'X3', 'unknown'])), {
      met: false,
      signed: ['X3', 'Y2'],
      missing: ['X1', 'X2', 'Y1', 'Y3'],
    });
  });
});

describe('a policy file', () => {
  const one = `witness a ${key(0).vkey}`;
  const two = `witness b ${key(1).vkey}`;

  test('may have blanks, tabs, comments, URLs, any order, and no last line end', () => {
    const { logs, witnesses, quorum } = policyOf(
      `# comment\n \t# another\n\t\n\t${one} \t https://w.example/submit \nquorum a\n  log\t${log.vkey} https://relay.example`,
    );
    assert.equal(witnesses[0]?.url, 'https://w.example/submit');
    assert.equal(logs[0]?.url, 'https://relay.example');
    assert.deepEqual(quorum, { kind: 'witness', name: 'a' });
  });
  test('may require nothing: `quorum none`', () => {
    const policy = policyOf('quorum none\n');
    assert.deepEqual(judgeQuorum(policy, new Set()), { met: true, signed: [], missing: [] });
    assert.equal(policyOf(`${one}\nquorum none`).witnesses.length, 1);
    assert.deepEqual(judgeQuorum(policyOf(`${one}\nquorum none`), new Set()).missing, []);
  });
  test('compares names byte for byte', () => {
    assert.equal(
      problemOf(`witness K ${key(0).vkey}\nquorum \u212a\n`),
      'line 2: `\u212a` is not the name of a witness or group of a line before',
    );
    assert.ok(policyOf(`witness K ${key(0).vkey}\nwitness \u212a ${key(1).vkey}\nquorum K\n`));
  });
  test('may have other octets than UTF-8 in comments only', () => {
    const latin1 = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'));
    assert.ok(policyOf(latin1('# caf\u00e9\nquorum none\n')));
    assert.equal(problemOf(latin1(`witness caf\u00e9 ${key(0).vkey}\n`)), 'line 1: it is not UTF-8');
  });
  test('may have logs that sign with each of the three types', () => {
    const lines = ([1, 4, 6] as const).map((type) => `log ${c2spKey('l.example', type).vkey}\n`);
    assert.equal(policyOf(`${lines.join('')}quorum none\n`).logs.length, 3);
  });
  test('may have witnesses of both algorithms', () => {
    const pq = c2spKey('pq.example', 6, Buffer.alloc(32, 4));
    assert.equal(policyOf(`witness pq ${pq.vkey}\nquorum pq\n`).witnesses[0]?.key.publicKey.length, 1312);
  });
  test('supports 32 logs, 32 witnesses and 32 groups', () => {
    const many = Array.from({ length: 32 }, (_, n) => n);
    const text = [
      ...many.map((n) => `log ${c2spKey(`l${n}.example`, 1).vkey}`),
      ...many.map((n) => `witness w${n} ${c2spKey(`w${n}.example`, 4).vkey}`),
      ...many.map((n) => `group g${n} all w${n}${n === 0 ? '' : ` g${n - 1}`}`),
      'quorum g31',
    ].join('\n');
    const policy = policyOf(text);
    const names = many.map((n) => `w${n}`);
    assert.equal(met(policy, ...names), true);
    assert.equal(met(policy, ...names.slice(1)), false);
  });

  const KEY_RULE =
    'the key is no verifier key `<name>+<key id>+<base64>` of type 0x01 (Ed25519), 0x04 or 0x06 (cosignatures, Ed25519 and ML-DSA-44)';
  const refused: Readonly<Record<string, readonly [text: string, problem: string]>> = {
    'no quorum': [`${one}\n`, 'there is no `quorum` line; `quorum none` is one'],
    empty: ['', 'there is no `quorum` line; `quorum none` is one'],
    'two quorums': ['quorum none\nquorum none\n', 'line 2: there is another quorum line before'],
    'a quorum of two names': [
      `${one}\nquorum a a\n`,
      'line 2: a quorum line is `quorum <name>` or `quorum none`',
    ],
    'a quorum before its witness': [
      `quorum a\n${one}\n`,
      'line 1: `a` is not the name of a witness or group of a line before',
    ],
    'an unknown keyword': ['Log x\n', 'line 1: `Log` is no keyword: log, witness, group or quorum'],
    'a carriage return': [
      'quorum none\r\n',
      'line 1: it contains the control character 0x0d; only tabs are accepted',
    ],
    'a delete': ['# \u007f\n', 'line 1: it contains the control character 0x7f; only tabs are accepted'],
    'a log without a key': ['log\n', 'line 1: a log line is `log <vkey> [<url>]`'],
    'a log with too much': [`log ${log.vkey} u v\n`, 'line 1: a log line is `log <vkey> [<url>]`'],
    'a log whose key is none': ['log relay.example/receipts\n', `line 1: ${KEY_RULE}`],
    'a log twice': [
      `log ${log.vkey}\nlog ${log.vkey}\n`,
      'line 2: this public key is the one of another log line',
    ],
    'a log’s key under another name': [
      `log ${log.vkey}\nlog ${c2spKey('other.example', 1, Buffer.alloc(32, 1)).vkey}\n`,
      'line 2: this public key is the one of another log line',
    ],
    'a witness without a key': ['witness a\n', 'line 1: a witness line is `witness <name> <vkey> [<url>]`'],
    'a witness with a changed key id': [
      `${one.replace(key(0).id.toString('hex'), '00000000')}\n`,
      `line 1: ${KEY_RULE}`,
    ],
    'a witness with the key of a log': [
      `witness a ${log.vkey}\n`,
      'line 1: the key is of type 0x01; a witness has a key of type 0x04 or 0x06',
    ],
    'a witness’s key twice': [
      `${one}\nwitness b ${key(0).vkey}\n`,
      'line 2: this public key is the one of another witness line',
    ],
    'a name twice': [`${one}\nwitness a ${key(1).vkey}\n`, 'line 2: the name `a` is defined already'],
    'a group with the name of a witness': [
      `${one}\n${two}\ngroup a any b\n`,
      'line 3: the name `a` is defined already',
    ],
    'a witness named none': [`witness none ${key(0).vkey}\n`, 'line 1: the name `none` is predefined'],
    'a group named none': [`${one}\ngroup none any a\n`, 'line 2: the name `none` is predefined'],
    'none as a member': [
      'group g any none\n',
      'line 1: `none` is not the name of a witness or group of a line before',
    ],
    'a group without members': [
      'group g any\n',
      'line 1: a group line is `group <name> <k> <name>…` with `all` or `any` or a number for <k>',
    ],
    'a group of a later name': [
      `group g any a\n${one}\n`,
      'line 1: `a` is not the name of a witness or group of a line before',
    ],
    'a group of itself': [
      'group g any g\n',
      'line 1: `g` is not the name of a witness or group of a line before',
    ],
    'a threshold of 0': [
      `${one}\ngroup g 0 a\n`,
      'line 2: `0` is neither `all` nor `any` nor a number from 1 to 1',
    ],
    'a threshold over the members': [
      `${one}\ngroup g 2 a\n`,
      'line 2: `2` is neither `all` nor `any` nor a number from 1 to 1',
    ],
    'a threshold that is no decimal': [
      `${one}\ngroup g 0x1 a\n`,
      'line 2: `0x1` is neither `all` nor `any` nor a number from 1 to 1',
    ],
    'a member twice in a group': [`${one}\ngroup g 1 a a\n`, 'line 2: `a` is a member of a group already'],
    'a member of two groups': [
      `${one}\n${two}\ngroup g any a\ngroup h any b a\n`,
      'line 4: `a` is a member of a group already',
    ],
  };
  for (const [title, [text, problem]] of Object.entries(refused))
    test(`is refused: ${title}`, () => assert.equal(problemOf(text), problem));
});

test('the policy of the guide, and the line in the help of relay witness, are ones', () => {
  const read = (path: string) => readFileSync(new URL(`../../../src/${path}`, import.meta.url), 'utf8');
  const [, guide = ''] = /```\n(witness mine [\s\S]*?)```/.exec(read('WITNESSING.md')) ?? [];
  assert.equal(policyOf(guide).witnesses[0]?.url, 'https://witness.mine.example');
  const [, line = ''] = /\n {2}(log \S+\+\S+)\n/.exec(read('cli/witness.ts')) ?? [];
  assert.equal(policyOf(`${line}\nquorum none\n`).logs[0]?.key.name, 'relay.example/receipts');
});

describe('the cosignatures of a checkpoint by a policy', () => {
  const text = c2spCheckpointText(log.name, 1, c2spRoot(['a']));
  const pq = c2spKey('pq.example', 6, Buffer.alloc(32, 4));
  const policy = policyOf(
    `witness a ${key(0).vkey}\nwitness b ${key(1).vkey}\nwitness pq ${pq.vkey}\ngroup g 2 a b pq\nquorum g\n`,
  );
  const judge = (...lines: readonly string[]) =>
    cosignaturesOf(parseNote(c2spNote(text, log) + lines.join('')) ?? assert.fail(), policy, primitives);

  test('are those of its witnesses, under its names, with time and line; others are ignored', async () => {
    const [line, line2] = [c2spCosignature(text, key(1), 100), c2spCosignature(text, pq, 101)];
    const { valid, invalid, unsupported } = await judge(line2, c2spCosignature(text, key(5), 1), line);
    assert.deepEqual(valid, [
      { name: 'b', keyId: key(1).id.toString('hex'), time: 100, line: line.trimEnd() },
      { name: 'pq', keyId: pq.id.toString('hex'), time: 101, line: line2.trimEnd() },
    ]);
    assert.deepEqual([invalid, unsupported], [[], []]);
    assert.equal(met(policy, ...valid.map(({ name }) => name)), true);
  });
  test('the latest counts if a witness has signed twice: it is one witness', async () => {
    const { valid } = await judge(
      c2spCosignature(text, key(0), 100),
      c2spCosignature(text, key(0), 300),
      c2spCosignature(text, key(0), 200),
    );
    assert.deepEqual(
      valid.map(({ name, time }) => [name, time]),
      [['a', 300]],
    );
    assert.equal(met(policy, ...valid.map(({ name }) => name)), false);
  });
  test('a bad signature by a known key is named', async () => {
    const other = c2spCheckpointText(log.name, 2, c2spRoot(['a', 'b']));
    const { valid, invalid } = await judge(
      c2spCosignature(other, key(0), 100),
      c2spCosignature(text, key(1), 1),
    );
    assert.deepEqual([valid.map(({ name }) => name), invalid], [['b'], ['a']]);
  });
  test('a line of ML-DSA-44 is named where the runtime cannot verify it', async () => {
    const note = parseNote(c2spNote(text, log) + c2spCosignature(text, pq, 1)) ?? assert.fail();
    assert.deepEqual(await cosignaturesOf(note, policy, ed25519), {
      valid: [],
      invalid: [],
      unsupported: ['pq'],
    });
  });
});
