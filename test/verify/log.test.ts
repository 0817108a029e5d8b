// Checkpoints and their consistency in the importable verifier, from source and as built.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toBase64 } from '#src/domain/encoding.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import * as built from '#src/verify/built/verify.js';
import * as source from '#src/verify/verifier.ts';
import { testKey } from '#test/support/given/primitives.ts';
import * as given from '#test/support/log/logged-receipt.ts';
import { MTH, PROOF } from '#test/support/witness/rfc6962.ts';

const { keys, LEAVES, ORIGIN, checkpointKey, checkpointOf } = given;
const NEWER = [...LEAVES, ...LEAVES.slice(0, 3), new Uint8Array(32)];
const OTHER = [new Uint8Array(32), ...LEAVES.slice(1)];
const [older, newer] = [given.checkpoint, await checkpointOf(NEWER)];
const shown = (leaves: readonly Uint8Array[]) => ({
  origin: ORIGIN,
  size: leaves.length,
  root: toBase64(MTH(leaves)),
  keyId: checkpointKey.keyId,
});
const answer = (from: number, leaves: readonly Uint8Array[]) => ({
  from,
  to: leaves.length,
  proof: PROOF(from, leaves).map(toBase64),
});

type Log = Pick<typeof built, 'verifyCheckpoint' | 'verifyConsistency'>;
const BOTH: Readonly<Record<string, Log>> = { source, built };

for (const [name, { verifyCheckpoint, verifyConsistency }] of Object.entries(BOTH)) {
  describe(`the log, ${name}`, () => {
    test('a checkpoint that a checkpoint key of the set signed returns its tree head', async () => {
      const report = await verifyCheckpoint(older, { keys });
      assert.deepEqual(report, { ok: true, ...shown(LEAVES) });
    });

    test('a text that is no checkpoint, and one of another key, a receipt key or a compromised key', async () => {
      const revoked = testKey({ purpose: 'checkpoint' });
      const compromised = { keys: [{ ...toJwk(revoked.record), revokedAt: 1 }] };
      const cases = [
        ['', keys, 'malformed'],
        [given.jws, keys, 'malformed'],
        [older.replace('\n5\n', '\n05\n'), keys, 'malformed'],
        [older.replace('\n5\n', '\n6\n'), keys, 'signature'],
        [await checkpointOf(LEAVES, given.key), keys, 'signature'],
        [await checkpointOf(LEAVES, testKey({ purpose: 'checkpoint' })), keys, 'signature'],
        [await checkpointOf(LEAVES, revoked), compromised, 'signature'],
      ] as const;
      for (const [note, set, problem] of cases)
        assert.deepEqual(await verifyCheckpoint(note, { keys: set }), { ok: false, problem }, note);
    });

    test('a newer checkpoint continues the older one, with the proof as text or parsed', async () => {
      const proof = answer(LEAVES.length, NEWER);
      const good = { ok: true, older: shown(LEAVES), newer: shown(NEWER) };
      assert.deepEqual(await verifyConsistency({ older, newer, proof }, { keys }), good);
      const text = { older, newer, proof: JSON.stringify(proof) };
      assert.deepEqual(await verifyConsistency(text, { keys }), good);
      assert.equal((await verifyConsistency({ older, newer: older }, { keys })).ok, true);
      const empty = await checkpointOf([]);
      assert.equal((await verifyConsistency({ older: empty, newer }, { keys })).ok, true);
    });

    test('each way in which it does not is named', async () => {
      const proof = answer(LEAVES.length, NEWER);
      const [first = '', ...rest] = proof.proof;
      const unsigned = await checkpointOf(NEWER, testKey({ purpose: 'checkpoint' }));
      const elsewhere = await checkpointOf(NEWER, checkpointKey, 'other.example/receipts');
      const rewritten = await checkpointOf([...OTHER, ...LEAVES.slice(0, 4)]);
      const cases = [
        ['older', { older: unsigned, newer, proof }],
        ['newer', { older, newer: unsigned, proof }],
        ['origin', { older, newer: elsewhere, proof }],
        ['smaller', { older: newer, newer: older, proof }],
        ['fork', { older, newer: await checkpointOf(OTHER) }],
        ['missing', { older, newer }],
        ['malformed', { older, newer, proof: {} }],
        ['malformed', { older, newer, proof: 'no JSON' }],
        ['malformed', { older, newer, proof: { ...proof, proof: [5] } }],
        ['malformed', { older, newer, proof: { ...proof, proof: [first.slice(4), ...rest] } }],
        ['sizes', { older, newer, proof: { ...proof, from: 4 } }],
        ['sizes', { older, newer, proof: { ...proof, to: 10 } }],
        ['inconsistent', { older, newer, proof: { ...proof, proof: rest } }],
        ['inconsistent', { older, newer, proof: { ...proof, proof: [...proof.proof, first] } }],
        ['inconsistent', { older, newer: rewritten, proof }],
      ] as const;
      for (const [problem, claim] of cases)
        assert.deepEqual(await verifyConsistency(claim, { keys }), { ok: false, problem });
    });

    test('an argument of a wrong type throws a TypeError', async () => {
      const unchecked: (given: unknown, options: unknown) => Promise<unknown> = verifyCheckpoint as never;
      await assert.rejects(unchecked(5, { keys }), { name: 'TypeError', message: /text of a signed note/ });
      await assert.rejects(unchecked(older, {}), { name: 'TypeError', message: /keys are missing/ });
    });
  });
}
