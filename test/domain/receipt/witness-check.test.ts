// The check `receipt_witnessed`: given a proof with cosignatures and the reader's policy, when it is verified at a time, then ok,
// pending or not, with who has cosigned, when, and who has not.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WitnessDetails } from '#src/domain/receipt/report.ts';
import { CHECK_LABELS, checkRow, witnessText } from '#src/domain/receipt/texts.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { receiptLeafData } from '#src/domain/transparency/tree.ts';
import { parseWitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import { T0 } from '#test/support/given/given-events.ts';
import { goodFacts, payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { primitives as ed25519, sha256, testKey } from '#test/support/given/primitives.ts';
import { ORIGIN, smallLog } from '#test/support/log/small-log.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { cosignedBy, policyText } from '#test/support/witness/cosigned.ts';

const primitives = { ...ed25519, mlDsa44Verify };
const key = testKey();
const iat = T0 / 1000;
const log = smallLog();
const jws = await signed({ ...(await payloadOf()), v: 2, log: { origin: ORIGIN, mmdSeconds: 1800 } }, key);
for (const data of [sha256('a'), receiptLeafData(jws), sha256('b')]) await log.append(data);
const proof = await log.proof(1);
const [a, b, pq] = [c2spKey('a.example', 4), c2spKey('b.example', 4), c2spKey('pq.example', 6)];
const TWO = policyText({ A: a, B: b, PQ: pq }, 'group all-of-us 2 A B PQ', 'quorum all-of-us');

type When = {
  readonly proof: string | null;
  readonly policy?: string;
  readonly now?: number;
  readonly isOwnPolicy?: boolean;
};
async function judged({ proof, policy = TWO, now = iat + 10, isOwnPolicy = false }: When, by = primitives) {
  const read = parseWitnessPolicy(policy).policy ?? assert.fail();
  const facts = await goodFacts(key, {
    jws,
    job: null,
    keys: [key.record, log.key.record],
    log: { proof, now, policy: read, isOwnPolicy },
  });
  const report = await verifySignedReceipt(facts, by);
  const check = report.checks.find(({ name }) => name === 'receipt_witnessed');
  if (check?.name !== 'receipt_witnessed') return assert.fail('no check');
  assert.equal(
    report.ok,
    report.checks.every(({ ok }) => ok),
  );
  return check;
}
const dueBy = iat + 600;

test('with a quorum: ok, with the names and times in the policy’s order, and who is missing', async () => {
  const check = await judged({ proof: cosignedBy(cosignedBy(proof, iat + 7, pq), iat + 5, a) });
  assert.deepEqual(check, {
    name: 'receipt_witnessed',
    ok: true,
    details: {
      pending: false,
      quorum: true,
      names: ['A', 'PQ'],
      times: [iat + 5, iat + 7],
      missing: ['B'],
      dueBy,
    },
  });
});

test('without a policy there is no such check', async () => {
  const facts = { jws, job: null, keys: [key.record, log.key.record], log: { proof, now: iat } };
  const { checks } = await verifySignedReceipt(await goodFacts(key, facts), primitives);
  assert.equal(
    checks.some(({ name }) => name === 'receipt_witnessed'),
    false,
  );
});

describe('without a quorum', () => {
  const one = cosignedBy(proof, iat + 5, b);
  const details = {
    quorum: false,
    names: ['B'],
    times: [iat + 5],
    missing: ['A', 'PQ'],
    dueBy,
    problem: 'quorum',
  };
  test('it fails by a reader’s policy, and is pending for ten minutes by the log’s own', async () => {
    for (const now of [iat, dueBy])
      for (const isOwnPolicy of [true, false])
        assert.deepEqual(await judged({ proof: one, now, isOwnPolicy }), {
          name: 'receipt_witnessed',
          ok: isOwnPolicy,
          details: { pending: true, ...details },
        });
  });
  test('then it fails, with the names that are missing', async () => {
    for (const isOwnPolicy of [true, false])
      assert.deepEqual(await judged({ proof: one, now: dueBy + 1, isOwnPolicy }), {
        name: 'receipt_witnessed',
        ok: false,
        details: { pending: false, ...details },
      });
  });
  test('a receipt that is dated far ahead is not pending', async () => {
    assert.equal((await judged({ proof: one, now: iat - 100_000, isOwnPolicy: true })).ok, false);
  });
  test('two cosignatures of one witness are no two witnesses', async () => {
    const { ok, details: found } = await judged({ proof: cosignedBy(one, iat + 9, b), now: dueBy + 1 });
    assert.deepEqual([ok, found?.names, found?.times], [false, ['B'], [iat + 9]]);
  });
});

describe('a cosigned checkpoint does not count', () => {
  const fails = async (problem: WitnessDetails['problem'], when: When, by = primitives) => {
    const { ok, details } = await judged({ now: dueBy + 1, ...when }, by);
    assert.deepEqual([ok, details?.pending, details?.problem], [false, false, problem]);
    return details;
  };
  test('if the proof does not hold', async () => {
    const wrong = await log.proof(0);
    const details = await fails('proof', { proof: cosignedBy(wrong, iat, a, b), now: iat });
    assert.deepEqual(details?.missing, ['A', 'B', 'PQ']);
  });
  test('if a witness’s signature is of another checkpoint, also beside a quorum', async () => {
    const other = cosignedBy(await log.checkpoint(2), iat, pq)
      .split('\n')
      .at(-2);
    await fails('cosignature', { proof: `${cosignedBy(proof, iat, a, b)}${other}\n` });
  });
  test('if no log of the policy has signed it', async () => {
    const foreign = `log ${c2spKey(ORIGIN, 1).vkey}\n`;
    await fails('log', { proof: cosignedBy(proof, iat, a, b), policy: foreign + TWO });
  });
  test('as far as the runtime cannot verify ML-DSA-44, which is named', async () => {
    await fails(
      'unsupported',
      { proof: cosignedBy(proof, iat, a, pq) },
      { ...ed25519, mlDsa44Verify: async () => null },
    );
  });
  test('by the keys of a policy that has other witnesses', async () => {
    const stranger = policyText({ S: c2spKey('s.example', 4) }, 'quorum S');
    const details = await fails('quorum', { proof: cosignedBy(proof, iat, a, b, pq), policy: stranger });
    assert.deepEqual([details?.names, details?.missing], [[], ['S']]);
  });
});

describe('without a proof', () => {
  const details = {
    pending: true,
    quorum: false,
    names: [],
    times: [],
    missing: ['A', 'B', 'PQ'],
    dueBy: iat + 1800,
  };
  test('by the log’s own policy it is pending as long as the log owes none; the later of both times is named', async () => {
    const check = await judged({ proof: null, now: iat + 1800, isOwnPolicy: true });
    assert.deepEqual(check, { name: 'receipt_witnessed', ok: true, details });
  });
  test('by a reader’s policy it fails', async () => {
    const check = await judged({ proof: null, now: iat + 1800 });
    const problem = 'proof';
    assert.deepEqual(check, { name: 'receipt_witnessed', ok: false, details: { ...details, problem } });
  });
  test('then it fails like the check of the log', async () => {
    const { ok, details } = await judged({ proof: null, now: iat + 1801, isOwnPolicy: true });
    assert.deepEqual([ok, details?.pending, details?.problem], [false, false, 'proof']);
  });
});

test('a policy with `quorum none` requires no witness, and still names those that have cosigned', async () => {
  const policy = policyText({ A: a }, 'quorum none');
  assert.deepEqual((await judged({ proof, policy, now: dueBy + 1 })).details?.names, []);
  const { ok, details } = await judged({ proof: cosignedBy(proof, iat, a), policy, now: dueBy + 1 });
  assert.deepEqual([ok, details?.names, details?.missing], [true, ['A'], []]);
});

test('as text: who has cosigned and when, who has not, and why it fails', async () => {
  const good = await judged({ proof: cosignedBy(proof, 1_700_000_000, a, b) });
  assert.equal(
    witnessText(good),
    'Cosigned by A at 2023-11-14T22:13:20.000Z, B at 2023-11-14T22:13:20.000Z. Not by PQ.',
  );
  const late = await judged({ proof, now: dueBy + 1 });
  assert.equal(witnessText(late), 'Too few witnesses have cosigned. Not by A, B, PQ.');
  const early = checkRow(await judged({ proof }), 'verified');
  assert.equal(early.state, 'failed');
  assert.match(
    early.more ?? '',
    /^Too few witnesses have cosigned\. Not by A, B, PQ\. It is due by .*: obtain the proof again until then\.$/,
  );
  const pending = checkRow(await judged({ proof, isOwnPolicy: true }), 'ok');
  assert.deepEqual([pending.state, pending.label], ['pending', CHECK_LABELS.receipt_witnessed]);
  assert.match(pending.more ?? '', /^Not yet; it is due by .*\. That is no error\. Not by A, B, PQ\.$/);
});
