// The published test vectors: made again byte for byte, and judged as they state by the verifiers in JavaScript and Python.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { snippet } from '#src/discovery/documents/snippets.ts';
import { payloadHash } from '#src/domain/payment/payload-hash.ts';
import { RECEIPT_VERSIONS } from '#src/domain/receipt/payload.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { verifyConsistency, verifyProof, verifyReceipt } from '#src/verify/built/verify.js';
import { needsCryptography, needsNode } from '#test/support/chain/requirements.ts';
import type { Vector, VectorKind } from '#test/support/given/vector-keys.ts';
import { type VectorFile, vectorFiles } from '#test/support/given/vectors.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const folder = join(rootPath, 'src/verify/vectors');
const textOf = (name: string) => readFileSync(join(folder, name), 'utf8');
/** With the key set in the place of its name. */
function read(name: string): readonly Vector[] {
  const { keySets, vectors } = JSON.parse(textOf(name)) as VectorFile;
  return vectors.map((one) => ({ ...one, input: { ...one.input, keys: keySets[one.input.keys] } }));
}
const FILES = ['deliveries.json', 'receipts.json', 'transparency.json'];
const ALL = FILES.flatMap(read);
const ofKind = (...kinds: readonly VectorKind[]) => ALL.filter(({ kind }) => kinds.includes(kind));

/** The members that vectors have; those of other kinds are missing. */
type Input = {
  readonly jws: string;
  readonly keys: object;
  readonly proof: string;
  readonly policy: string;
  readonly older: string;
  readonly newer: string;
  readonly disclosures: readonly string[];
  readonly payment: Parameters<typeof payloadHash>[0];
};
const inputOf = ({ input }: Vector): Input => input as Input;

/** The verdict in the form of `expected`. */
type Verdict = { readonly codes: readonly string[]; readonly problem: string | null };
const expectedOf = ({ expected }: Vector): Verdict =>
  expected.valid
    ? { codes: [], problem: null }
    : { codes: expected.codes, problem: expected.problem ?? null };

test('the stored files are made again with the same bytes: after a change run `bun run build:vectors`', async () => {
  const made = await vectorFiles();
  assert.deepEqual(readdirSync(folder).sort(), FILES);
  assert.deepEqual(Object.keys(made).sort(), FILES);
  for (const [name, text] of Object.entries(made)) assert.ok(text === textOf(name), `${name} is stale`);
});

test('each vector has a name of its own, each valid one is of a known kind, and each kind has refused twins', () => {
  assert.equal(new Set(ALL.map(({ name }) => name)).size, ALL.length);
  for (const { name, twinOf, expected, kind } of ALL) {
    const original = ALL.find((one) => one.name === twinOf);
    assert.equal(expected.valid, twinOf === undefined, name);
    if (twinOf !== undefined)
      assert.deepEqual([original?.kind, original?.expected.valid], [kind, true], name);
  }
  const twins = ALL.filter(({ expected }) => !expected.valid);
  assert.deepEqual(new Set(ALL.map(({ kind }) => kind)), new Set(twins.map(({ kind }) => kind)));
  const versions = ofKind('receipt').flatMap((one) => {
    const payload = JSON.parse(Buffer.from(inputOf(one).jws.split('.')[1] ?? '', 'base64url').toString());
    return one.expected.valid ? [payload.v] : [];
  });
  assert.deepEqual([...new Set(versions)].sort(), [...RECEIPT_VERSIONS]);
});

/** Without the two checks of expected ids, which only a caller that has them can make. */
const failedIn = (checks: readonly { readonly name: string; readonly ok: boolean }[]) =>
  checks
    .filter(({ name, ok }) => !ok && name !== 'receipt_present' && name !== 'payload_job_id')
    .map(({ name }) => name);

const JUDGES: Readonly<Record<Exclude<VectorKind, 'delivery'>, (input: Input) => Promise<Verdict>>> = {
  async receipt({ jws, keys }) {
    const { checks, ok } = await verifyReceipt(jws, { keys });
    assert.equal(
      ok,
      checks.every((check) => check.ok),
    );
    return { codes: failedIn(checks), problem: null };
  },
  async disclosures({ jws, keys, disclosures }) {
    const { opened, checks } = await verifyReceipt(jws, { keys, disclosures });
    assert.deepEqual(failedIn(checks), []);
    const problem = opened?.flatMap((one) => (one.ok ? [] : [one.problem]))[0] ?? null;
    return { codes: problem === null ? [] : ['disclosure'], problem };
  },
  async payment({ jws, keys, payment }) {
    const { payload } = await verifyReceipt(jws, { keys });
    const holds = payload?.payment?.payloadHash === payloadHash(payment);
    return { codes: holds ? [] : ['payment_hash'], problem: null };
  },
  async inclusion({ jws, keys, proof }) {
    const { checks } = await verifyReceipt(jws, { keys, proof });
    const found = await verifyProof(proof, { receipt: jws, keys });
    return { codes: failedIn(checks), problem: found.ok ? null : found.problem };
  },
  async witnessed({ jws, keys, proof, policy }) {
    const { checks } = await verifyReceipt(jws, { keys, proof, policy });
    const check = checks.find(({ name }) => name === 'receipt_witnessed');
    const { problem = null } = check?.name === 'receipt_witnessed' ? (check.details ?? {}) : {};
    return { codes: failedIn(checks), problem };
  },
  async consistency({ older, newer, proof, keys }) {
    const verdict = await verifyConsistency({ older, newer, proof }, { keys });
    return { codes: [], problem: verdict.ok ? null : verdict.problem };
  },
};

for (const vector of ALL.filter(({ kind }) => kind !== 'delivery')) {
  test(`JavaScript: ${vector.name}`, async () => {
    const kind = vector.kind as Exclude<VectorKind, 'delivery'>;
    const verdict = await JUDGES[kind](inputOf(vector));
    const expected = expectedOf(vector);
    // The verdict on two checkpoints has a reason and no list of checks.
    assert.deepEqual(verdict, kind === 'consistency' ? { ...expected, codes: [] } : expected);
  });
}

test('JavaScript: the valid disclosures open what the vector states', async () => {
  for (const { input, expected } of ofKind('disclosures')) {
    if (!expected.valid) continue;
    const { jws, keys, disclosures } = input as Input;
    const { opened } = await verifyReceipt(jws, { keys, disclosures });
    assert.deepEqual(
      opened?.map((one) => [one.name, one.ok && one.value]),
      expected.opened,
    );
  }
});

const scratch = testFolder('verify-vectors');
const code = (id: 'python-verify-offline' | 'python-verify-webhook' | 'javascript-verify-webhook') =>
  snippet(documentFacts(fakeWorld()), id).code;

/** What a program prints that reads vectors as JSON from standard input. */
function judgedBy(command: string, args: readonly string[], vectors: readonly Vector[]): readonly Verdict[] {
  const input = JSON.stringify(vectors);
  const { stdout, stderr } = spawnSync(command, args, { cwd: scratch, input, encoding: 'utf8' });
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

const IN_PYTHON = `
import json, sys
from verify import open_disclosures, payment_matches, verify_consistency, verify_receipt
verdicts = []
for vector in json.load(sys.stdin):
    case, problem = vector["input"], None
    if vector["kind"] == "consistency":
        checks = verify_consistency(case["older"], case["newer"], case["proof"], case["keys"])
    else:
        checks, payload = verify_receipt(case["jws"], case["keys"], case.get("proof"))
        if "payment" in case:
            checks.append(("payment_hash", payment_matches(**case["payment"], payload=payload)))
        for _, _, problem in open_disclosures(case.get("disclosures", []), payload):
            if problem is not None:
                checks.append(("disclosure", False))
                break
    verdicts.append({"codes": [name for name, ok in checks if not ok], "problem": problem})
print(json.dumps(verdicts))
`;

describe('the verifier in Python', needsCryptography(), () => {
  test('judges every vector of its kinds as stated', () => {
    writeFileSync(join(scratch, 'verify.py'), code('python-verify-offline'));
    const vectors = ofKind('receipt', 'disclosures', 'payment', 'inclusion', 'consistency');
    const verdicts = judgedBy('python3', ['-c', IN_PYTHON], vectors);
    for (const [at, vector] of vectors.entries()) {
      const { codes, problem } = expectedOf(vector);
      // It names the check that fails; a reason only for disclosures.
      const stated = { codes, problem: vector.kind === 'disclosures' ? problem : null };
      assert.deepEqual(verdicts[at], stated, vector.name);
    }
  });

  test('judges every delivery as stated', () => {
    const driver = `${code('python-verify-webhook')}
import sys
verdicts = []
for vector in json.load(sys.stdin):
    case = vector["input"]
    loaded.update(keys=case["keys"]["keys"], at=case["now"])
    time.time = time.monotonic = lambda: case["now"]
    verdicts.append(verify_webhook(case["headers"], base64.b64decode(case["body"])))
print(json.dumps(verdicts))`;
    deliveries('python3', ['-c', driver]);
  });
});

function deliveries(command: string, args: readonly string[]): void {
  const vectors = ofKind('delivery');
  assert.deepEqual(
    judgedBy(command, args, vectors),
    vectors.map(({ expected }) => expected.valid),
  );
}

describe('the function for targets in JavaScript', needsNode(20), () => {
  test('judges every delivery as stated', () => {
    const driver = `${code('javascript-verify-webhook')}
import { readFileSync } from 'node:fs';
const verdicts = [];
for (const { input } of JSON.parse(readFileSync(0, 'utf8'))) {
  // Each vector has its own keys, which are loaded first.
  [keys, loadedAt] = [[], -Infinity];
  globalThis.fetch = async () => ({ json: async () => input.keys });
  Date.now = () => input.now * 1000;
  verdicts.push(await verifyWebhook(input.headers, Buffer.from(input.body, 'base64')));
}
console.log(JSON.stringify(verdicts));`;
    writeFileSync(join(scratch, 'delivery.mjs'), driver);
    deliveries('node', ['delivery.mjs']);
  });
});
