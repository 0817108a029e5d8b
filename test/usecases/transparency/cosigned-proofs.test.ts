// What is served of the log while the newest checkpoint with a quorum is by a key that was compromised since.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCheckpoint, verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { transparency } from '#src/usecases/transparency/proofs.ts';
import { primitives, testKey } from '#test/support/given/primitives.ts';
import { publicLog, receiptIdAt } from '#test/support/log/public-log.ts';
import { smallLog } from '#test/support/log/small-log.ts';

const fresh = testKey({ purpose: 'checkpoint' });
const world = await publicLog(5);
const old = world.log.key;
const cosigned = { size: 5, note: await world.log.checkpoint(5) };
/** The same tree and two leaves more, signed by the fresh key. */
const newest = await (async () => {
  const { note } =
    (await (await publicLog(7, smallLog(undefined, fresh))).deps.rows.checkpoint()) ?? assert.fail();
  return { size: 7, note };
})();
await world.add(receiptIdAt(5), 'receipt-5.of.test');
await world.add(receiptIdAt(6), 'receipt-6.of.test');

function servedWith(compromisedAt: number | null) {
  const keys = [{ ...old.record, compromisedAt }, fresh.record];
  const asked = transparency({
    ...world.deps,
    rows: { ...world.deps.rows, checkpoint: async () => newest, cosigned: async () => cosigned },
    keys: { list: () => keys, refresh: async () => keys },
    latest: () => newest.note,
    latestCosigned: () => cosigned.note,
  });
  const sizes = async () => [
    parseCheckpoint((await asked.checkpoint()) ?? '')?.size,
    parseCheckpoint((await asked.covering(2)) ?? '')?.size,
    parseCheckpoint(asked.latest() ?? '')?.size,
  ];
  return { asked, keys, sizes };
}

test('the checkpoint with a quorum is served, also beside a newer one', async () => {
  const { asked, sizes } = servedWith(null);
  assert.deepEqual(await sizes(), [5, 5, 5]);
  const proof = await asked.prove(receiptIdAt(2));
  assert.equal(parseCheckpoint(parseTlogProof(String(proof))?.checkpoint ?? '')?.size, 5);
});

test('not if only a compromised key has signed it: the newest one is served, with which a reader can verify', async () => {
  const { asked, keys, sizes } = servedWith(1);
  assert.deepEqual(await sizes(), [7, 7, 7]);
  const proof = parseTlogProof(String(await asked.prove(receiptIdAt(2)))) ?? assert.fail();
  assert.equal((await verifySignedCheckpoint(proof.checkpoint, keys, primitives))?.size, 7);
});
