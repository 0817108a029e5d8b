// Whether a recorded receipt verifies: by the keys that stood in the log before it, whenever it is asked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventOf } from '#src/domain/events.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, execute, paidWith } from '#test/support/given/given-call.ts';
import { at, keyActivated, keyRetired } from '#test/support/given/given-events.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';
const announced = (it: World) => keyActivated({ keyId: it.key.keyId, x: it.key.x });
const compromised = (it: World) =>
  keyRetired({ keyId: it.key.keyId, reason: 'compromised', compromisedAt: at(-1000), effectiveAt: at(0) });

/** Executes a call and answers its receipt's event. */
async function receiptOf(it: World, changes: CallChanges = {}) {
  await execute(it, changes);
  const { data, position } = it.log.events.at(-1) ?? assert.fail('no event');
  return { data: data as EventOf<'ReceiptSigned'>['data'], position };
}
function judge(it: World) {
  let reads = 0;
  const log = {
    ...it.log,
    readStream: (stream: string) => {
      reads++;
      return it.log.readStream(stream);
    },
  };
  const judged = receiptJudge({ log, primitives });
  return {
    good: ({ data, position }: Awaited<ReturnType<typeof receiptOf>>) => judged(data, position),
    reads: () => reads,
  };
}

test('a receipt signed by a key that was announced before it verifies', async () => {
  const it = world();
  await given(it, KEYS, announced(it));
  assert.equal(await judge(it).good(await receiptOf(it)), true);
});

test('a key announced after the receipt does not help it, also where it is at hand already', async () => {
  const it = world();
  const receipt = await receiptOf(it);
  await given(it, KEYS, announced(it));
  const later = await receiptOf(it, paidWith(otherPayment(), { key: 'k2' }));
  const { good } = judge(it);
  assert.equal(await good(later), true);
  assert.equal(await good(receipt), false);
});

test('a compromise announced after the receipt does not undo it here, one before it does', async () => {
  const it = world();
  await given(it, KEYS, announced(it));
  const before = await receiptOf(it);
  await given(it, KEYS, compromised(it));
  const after = await receiptOf(it, paidWith(otherPayment(), { key: 'k2' }));
  for (let again = 0; again < 2; again++) {
    const { good } = judge(it);
    assert.deepEqual([await good(before), await good(after), await good(before)], [true, false, true]);
  }
});

test('live or replayed from the beginning, the answer is the same; key events are read only where they may have grown', async () => {
  const it = world();
  await given(it, KEYS, announced(it));
  const live = judge(it);
  const first = await receiptOf(it);
  assert.equal(await live.good(first), true);
  assert.equal(await live.good(first), true);
  assert.equal(live.reads(), 1);
  await given(it, KEYS, compromised(it));
  const second = await receiptOf(it, paidWith(otherPayment(), { key: 'k2' }));
  assert.equal(await live.good(second), false);
  assert.equal(live.reads(), 2);
  const replayed = judge(it);
  assert.deepEqual([await replayed.good(first), await replayed.good(second)], [true, false]);
  assert.equal(replayed.reads(), 1);
});

for (const [what, change] of [
  ['job', { jobId: 'job_other' }],
  ['receipt', { receiptId: 'rcpt_other' }],
  ['signature', { jws: 'a.b.c' }],
] as [string, Partial<EventOf<'ReceiptSigned'>['data']>][]) {
  test(`an event that names another ${what} than was signed does not verify`, async () => {
    const it = world();
    await given(it, KEYS, announced(it));
    const receipt = await receiptOf(it);
    assert.equal(await judge(it).good({ ...receipt, data: { ...receipt.data, ...change } }), false);
  });
}

test('receipts that are judged beside each other read the key events once', async () => {
  const it = world();
  await given(it, KEYS, announced(it));
  const receipts = [await receiptOf(it), await receiptOf(it, paidWith(otherPayment(), { key: 'k2' }))];
  const { good, reads } = judge(it);
  assert.deepEqual(await Promise.all([...receipts, ...receipts].map(good)), [true, true, true, true]);
  assert.equal(reads(), 1);
});

test('a reading that failed is no answer to the next receipt', async () => {
  const it = world();
  await given(it, KEYS, announced(it));
  const { data, position } = await receiptOf(it);
  let failures = 1;
  const head = () => (failures-- > 0 ? Promise.reject(new Error('the log does not answer')) : it.log.head());
  const judged = receiptJudge({ log: { ...it.log, head }, primitives });
  await assert.rejects(judged(data, position));
  assert.equal(await judged(data, position), true);
});
