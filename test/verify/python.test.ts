// The verifier in Python: the same verdicts as the importable one, on good, changed and foreign files.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { snippet } from '#src/discovery/documents/snippets.ts';
import { toBase64 } from '#src/domain/encoding.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { checkpointText } from '#src/domain/transparency/checkpoint.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { verifyConsistency, verifyReceipt } from '#src/verify/built/verify.js';
import { needsCryptography } from '#test/support/chain/requirements.ts';
import { forged } from '#test/support/given/given-receipt.ts';
import { testKey } from '#test/support/given/primitives.ts';
import * as given from '#test/support/log/logged-receipt.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { MTH, PATH, PROOF } from '#test/support/witness/rfc6962.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const needs = needsCryptography();
const folder = testFolder('verify-python');
const file = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return name;
};

const { keys, jws, payload, proof, key, checkpointKey } = given;
const header = { alg: 'EdDSA', kid: key.keyId, typ: 'relay-receipt+jws' };

const DRIVER = `
import json, sys
from verify import verify_receipt, verify_consistency
verdicts = []
for case in json.load(sys.stdin):
    if "jws" in case:
        checks, _ = verify_receipt(case["jws"], case["keys"], case.get("proof"))
    else:
        checks = verify_consistency(case["older"], case["newer"], case["proof"], case["keys"])
    verdicts.append([name for name, ok in checks if not ok])
print(json.dumps(verdicts))
`;

type ReceiptCase = { readonly jws: string; readonly keys: object; readonly proof?: string };
type LogCase = {
  readonly older: string;
  readonly newer: string;
  readonly proof: object | null;
  readonly keys: object;
};

/** The names of the checks that fail in Python, for each case. */
function failedInPython(cases: readonly (ReceiptCase | LogCase)[]): readonly (readonly string[])[] {
  const { stdout, stderr } = spawnSync('python3', ['-c', DRIVER], {
    cwd: folder,
    input: JSON.stringify(cases),
    encoding: 'utf8',
  });
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

const run = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync('python3', ['verify.py', ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
};

describe('the verifier in Python', needs, () => {
  file('verify.py', snippet(documentFacts(fakeWorld()), 'python-verify-offline').code);
  file('keys.json', JSON.stringify(keys));

  const made: ReceiptCase[] = [];
  const keysWith = (changes: object) => ({
    keys: [{ ...toJwk(key.record), ...changes }, toJwk(checkpointKey.record)],
  });

  test('returns the same failed checks for every receipt', async () => {
    const { iat } = payload;
    const [head = '', body = '', tail = ''] = jws.split('.');
    const spaced = Buffer.from(JSON.stringify(payload, null, 1)).toString('base64url');
    const signedText = async (text: string) => {
      const input = `${head}.${Buffer.from(text).toString('base64url')}`;
      const signature = await key.sign(new TextEncoder().encode(input));
      return `${input}.${Buffer.from(signature).toString('base64url')}`;
    };
    const twice = JSON.stringify(payload).replace('{', '{"iat":1,');
    const members = await Promise.all(
      Object.keys(payload).map((name) =>
        forged(header, Object.fromEntries(Object.entries(payload).filter(([one]) => one !== name)), key),
      ),
    );
    const { request, outcome } = payload;
    made.push(
      { jws, keys },
      { jws, keys, proof },
      { jws: given.withPayload({ ...payload, mode: 'demo' }), keys },
      { jws: `${head}.${spaced}.${tail}`, keys },
      { jws: await signedText(JSON.stringify(payload, null, 1)), keys },
      { jws: await signedText(twice), keys },
      { jws: `${head}.${body}.${given.tampered(tail)}`, keys },
      { jws: `${head}.${body}.${tail.slice(0, -1)}`, keys },
      { jws: `${head}.${body}.${tail}=`, keys },
      { jws: await forged(header, payload, given.stranger), keys },
      { jws: await forged({ ...header, kid: given.stranger.keyId }, payload, given.stranger), keys },
      { jws: await forged({ ...header, alg: 'none' }, payload, key), keys },
      { jws: await forged({ ...header, typ: 'JWT' }, payload, key), keys },
      { jws: await forged({ ...header, crit: ['x'] }, payload, key), keys },
      { jws: await forged(header, { ...payload, v: 9 }, key), keys },
      { jws: await forged(header, { ...payload, extra: 1 }, key), keys },
      {
        jws: await forged(header, { ...payload, request: { ...request, _sd: request._sd.slice(2) } }, key),
        keys,
      },
      { jws: await forged(header, { ...payload, outcome: { ...outcome, _sd: [] } }, key), keys },
      { jws, keys: keysWith({ exp: iat - 1 }) },
      { jws, keys: keysWith({ exp: iat }) },
      { jws, keys: keysWith({ nbf: iat + 1 }) },
      { jws, keys: keysWith({ nbf: iat }) },
      { jws, keys: keysWith({ revokedAt: iat }) },
      { jws, keys: keysWith({ revokedAt: iat + 1 }) },
      { jws, keys: keysWith({ purpose: 'checkpoint' }) },
      ...members.map((text) => ({ jws: text, keys })),
      ...[
        'x',
        '',
        proof.replace('@v1', '@v2'),
        proof.replace('\nindex', '\nextra AAAA\nindex'),
        proof.replace('index 2', 'index 1'),
        proof.replace('index 2', 'index 02'),
        proof.replace('index 2', 'index 5'),
        proof.replace('\n5\n', '\n6\n'),
        proof.replace(/(index 2\n)[^\n]+\n/, '$1'),
        proof.replace(`— ${given.ORIGIN}`, '— other.example'),
        `${proof}— other.example ${toBase64(new Uint8Array(68))}\n`,
        `${proof}not a signature line\n`,
        given.proofBy(await given.checkpointOf(given.LEAVES, key)),
        given.proofBy(await given.checkpointOf(given.LEAVES, testKey({ purpose: 'checkpoint' }))),
        given.proofBy(await given.checkpointOf(given.LEAVES, checkpointKey, 'other.example/receipts')),
      ].map((text) => ({ jws, keys, proof: text })),
    );
    const expected = await Promise.all(
      made.map(async ({ jws: text, keys: set, proof: given }) => {
        const options = given === undefined ? { keys: set } : { keys: set, proof: given };
        const { checks } = await verifyReceipt(text, options);
        return checks.filter(({ ok }) => !ok).map(({ name }) => name);
      }),
    );
    const ofPython = failedInPython(made);
    // The ids are compared with expected ones only by the importable verifier.
    const common = expected.map((names) =>
      names.filter((name) => name !== 'receipt_present' && name !== 'payload_job_id'),
    );
    for (const [at, names] of common.entries())
      assert.deepEqual(ofPython[at], names, JSON.stringify(made[at]));
    assert.ok(common.filter((names) => names.length === 0).length > 5);
  });

  const leaves = Array.from({ length: 20 }, (_, at) => Uint8Array.of(at));
  const note = (size: number) => given.checkpointOf(leaves.slice(0, size));
  const answer = (from: number, to: number) => ({
    from,
    to,
    proof: from === 0 ? [] : PROOF(from, leaves.slice(0, to)).map(toBase64),
  });

  test('inclusion and consistency hold between all sizes up to 20, and not with another proof', async () => {
    const notes = await Promise.all(Array.from({ length: 21 }, (_, size) => note(size)));
    const pairs = notes.flatMap((newer, to) =>
      notes.slice(0, to + 1).map((older, from) => ({ older, newer, from, to })),
    );
    const good = pairs.map(({ older, newer, from, to }) => ({
      older,
      newer,
      proof: from === to ? null : answer(from, to),
      keys,
    }));
    const bad = pairs
      .filter(({ from, to }) => from > 0 && from < to)
      .map(({ older, newer, from, to }) => {
        const { proof: path } = answer(from, to);
        return { older, newer, proof: { from, to, proof: [...path, toBase64(new Uint8Array(32))] }, keys };
      });
    const verdicts = failedInPython([...good, ...bad]);
    for (const [at, { from, to }] of pairs.entries()) assert.deepEqual(verdicts[at], [], `${from} to ${to}`);
    assert.ok(verdicts.slice(good.length).every((names) => names.includes('new_continues_old')));

    const logged = await Promise.all(
      leaves.slice(1).map(async (_, at) => {
        const all = [
          ...leaves.slice(0, at + 1),
          given.LEAVES[2] ?? new Uint8Array(),
          ...leaves.slice(at + 2),
        ];
        const name = {
          name: given.ORIGIN,
          publicKey: new Uint8Array(Buffer.from(checkpointKey.x, 'base64url')),
        };
        const text = checkpointText({ origin: given.ORIGIN, size: all.length, root: MTH(all) });
        const checkpoint = await signNote(text, name, checkpointKey.sign);
        return { jws, keys, proof: tlogProofText({ index: at + 1, path: PATH(at + 1, all), checkpoint }) };
      }),
    );
    assert.deepEqual(
      failedInPython(logged),
      logged.map(() => []),
    );
  });

  test('a checkpoint of another key, log or history fails in both verifiers', async () => {
    const older = await note(3);
    const others = [
      await given.checkpointOf(leaves.slice(0, 9), testKey({ purpose: 'checkpoint' })),
      await given.checkpointOf(leaves.slice(0, 9), checkpointKey, 'other.example/receipts'),
      await given.checkpointOf(leaves.slice(1, 10)),
      await note(2),
      await given.checkpointOf(leaves.slice(5, 8)),
      'no note',
    ];
    const cases = others.map((newer) => ({ older, newer, proof: answer(3, 9), keys }));
    for (const one of cases) assert.equal((await verifyConsistency(one, { keys })).ok, false);
    assert.ok(failedInPython(cases).every((names) => names.length > 0));
  });

  test('as a command: 0 verified, 1 not, 2 for what is no receipt, checkpoint or key set', async () => {
    const execution = file(
      'execution.json',
      JSON.stringify(given.executionAnswer({ checkpoint: await note(3) })),
    );
    const [receipt, inclusion] = [file('receipt.jws', `${jws}\n`), file('proof.txt', proof)];
    const good = run(
      'receipt',
      receipt,
      '--keys',
      'keys.json',
      '--proof',
      inclusion,
      '--disclose',
      execution,
    );
    assert.deepEqual([good.status, good.stderr], [0, '']);
    assert.match(good.stdout, /^rcpt_\S+ job_\S+ \S+ succeeded 200\n(ok {3}\S.*\n)+verified\n$/);
    assert.match(good.stdout, /^ok {3}disclosure target_url: "https:\/\/target\.example\/<hook>"$/m);
    const answered = file('answer.json', JSON.stringify(given.receiptAnswer()));
    assert.equal(run('receipt', answered, '--keys', 'keys.json').status, 0);

    const foreign = file('foreign.json', JSON.stringify({ disclosures: given.foreignDisclosures }));
    const wrong = run('receipt', receipt, '--keys', 'keys.json', '--disclose', foreign);
    assert.deepEqual(
      [wrong.status, /^FAIL disclosure target_url/m.test(wrong.stdout)],
      [1, true],
      wrong.stdout,
    );
    const changed = file('changed.jws', given.withPayload({ ...payload, mode: 'demo' }));
    const refused = run('receipt', changed, '--keys', 'keys.json');
    assert.deepEqual([refused.status, /^FAIL signature_valid$/m.test(refused.stdout)], [1, true]);

    const [newer, between] = [
      file('newer', await note(9)),
      file('between.json', JSON.stringify(answer(3, 9))),
    ];
    const files = ['consistency', execution, newer, '--keys', 'keys.json'];
    assert.equal(run(...files, '--proof', between).status, 0);
    assert.equal(run(...files).status, 1);

    for (const args of [
      ['receipt', 'none.json', '--keys', 'keys.json'],
      ['receipt', newer, '--keys', 'keys.json'],
      ['receipt', receipt, '--keys', receipt],
      ['consistency', foreign, newer, '--keys', 'keys.json'],
      ['receipt', receipt],
    ]) {
      const { status, stdout, stderr } = run(...args);
      assert.deepEqual([status, stdout], [2, ''], args.join(' '));
      assert.doesNotMatch(stderr, /Traceback/);
    }
  });
});
