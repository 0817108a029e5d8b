// The check `receipt_logged`: given a receipt and its proof, when it is verified at a time, then ok or not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import { type LogFacts, verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { leafData } from '#src/domain/transparency/tree.ts';
import { keyActivated, receiptSigned, T0 } from '#test/support/given/given-events.ts';
import { goodFacts, payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { primitives, testKey } from '#test/support/given/primitives.ts';
import { ORIGIN, type SmallLog, smallLog } from '#test/support/log/small-log.ts';

const key = testKey();
const iat = T0 / 1000;
const promised: ReceiptLog = { origin: ORIGIN, mmdSeconds: 1800 };

/** A log of seven leaves, the receipt its fifth: index 4. */
async function logged(jws: string, log = smallLog()): Promise<SmallLog> {
  const add = async (event: Parameters<typeof leafData>[0]) => {
    const data = leafData(event);
    assert.ok(data !== null);
    await log.append(data);
  };
  for (const letter of 'ABCD') await add(keyActivated({ keyId: letter.repeat(43) }));
  await add(receiptSigned({ jws }));
  for (const letter of 'EF') await add(receiptSigned({ jws: `e30.${letter}.e30` }));
  return log;
}

/** `promise` null: the receipt is older than the log. */
async function given({ promise = promised as ReceiptLog | null, log = smallLog() } = {}) {
  const payload = await payloadOf();
  const jws = await signed(promise === null ? payload : { ...payload, v: 2, log: promise }, key);
  const grown = await logged(jws, log);
  type When = { readonly proof: string | null; readonly now?: number };
  async function judged({ proof, now = iat + 10 }: When, keys = [log.key.record]) {
    const asked: LogFacts = { proof, now };
    const facts = await goodFacts(key, { jws, job: null, keys: [key.record, ...keys], log: asked });
    const report = await verifySignedReceipt(facts, primitives);
    const others = report.checks.filter(({ name }) => name !== 'receipt_logged');
    assert.ok(others.length === 7 && others.every(({ ok }) => ok), 'no other check depends on the log');
    const [check, ...more] = report.checks.filter(({ name }) => name === 'receipt_logged');
    assert.deepEqual([more, report.ok], [[], check?.ok]);
    return check;
  }
  return {
    log: grown,
    judged,
    async when(...asked: Parameters<typeof judged>) {
      const check = await judged(...asked);
      return (ok: boolean, details: object) =>
        assert.deepEqual(check, { name: 'receipt_logged', ok, details });
    },
  };
}

test('a proof that holds: ok, with the log’s origin, the receipt’s index and the checkpoint’s size', async () => {
  const it = await given();
  const then = await it.when({ proof: await it.log.proof(4) });
  then(true, { pending: false, origin: ORIGIN, index: 4, size: 7 });
});

test('it holds with any later checkpoint, and for any age of the receipt', async () => {
  const it = await given();
  for (const size of [5, 6]) {
    const then = await it.when({ proof: await it.log.proof(4, size), now: iat + 1e9 });
    then(true, { pending: false, origin: ORIGIN, index: 4, size });
  }
});

test('a receipt that names no log holds in the log of the keys', async () => {
  const it = await given({ promise: null });
  const then = await it.when({ proof: await it.log.proof(4) });
  then(true, { pending: false, origin: ORIGIN, index: 4, size: 7 });
});

const DAY = 86_400;
const YEAR = 365 * DAY;
for (const [what, promise, seconds] of [
  ['to the time that it promises', promised, promised.mmdSeconds],
  ['to the time that every relay promises, where it names none', null, 3600],
  ['to a day at most, where it promises more', { ...promised, mmdSeconds: DAY + 1 }, DAY],
  ['to a day at most, where it promises years', { ...promised, mmdSeconds: 10 * YEAR }, DAY],
  ['to a day, where it promises just that', { ...promised, mmdSeconds: DAY }, DAY],
] as [string, ReceiptLog | null, number][]) {
  test(`not included: pending ${what}; late a second after`, async () => {
    const it = await given({ promise });
    const dueBy = iat + seconds;
    for (const now of [iat, dueBy]) (await it.when({ proof: null, now }))(true, { pending: true, dueBy });
    for (const now of [dueBy + 1, iat + YEAR])
      (await it.when({ proof: null, now }))(false, { pending: false, dueBy });
  });
}

test('not included, by a clock that is up to a day behind the receipt: pending; further behind: false', async () => {
  for (const promise of [promised, null]) {
    const it = await given({ promise });
    const dueBy = iat + (promise?.mmdSeconds ?? 3600);
    (await it.when({ proof: null, now: iat - DAY }))(true, { pending: true, dueBy });
    for (const now of [iat - DAY - 1, iat - YEAR])
      (await it.when({ proof: null, now }))(false, { pending: false, dueBy, problem: 'future' });
  }
});

test('a valid proof is enough, however far ahead the receipt’s date is', async () => {
  const it = await given();
  const then = await it.when({ proof: await it.log.proof(4), now: iat - YEAR });
  then(true, { pending: false, origin: ORIGIN, index: 4, size: 7 });
});

test('a proof of another receipt or of another index: false, however young the receipt is', async () => {
  const it = await given();
  for (const index of [3, 5, 6]) {
    const then = await it.when({ proof: await it.log.proof(index) });
    then(false, { pending: false, problem: 'inclusion' });
  }
});

test('a proof with any line changed, doubled or left out: false', async () => {
  const it = await given();
  const lines = (await it.log.proof(4)).split('\n');
  assert.equal(lines.length, 2 + 3 + 1 + 3 + 1 + 1 + 1);
  for (const at of lines.keys()) {
    const line = lines[at] ?? '';
    const changed = line === '' ? 'x' : line.replace(/.$/, (last) => (last === 'B' ? 'C' : 'B'));
    // A note may bear a signature twice.
    const puts = line.startsWith('— ') ? [[changed], []] : [[changed], [line, line], []];
    for (const put of puts) {
      const text = [...lines.slice(0, at), ...put, ...lines.slice(at + 1)].join('\n');
      const check = await it.judged({ proof: text });
      assert.equal(check?.ok, false, `${at} ${put.length}`);
    }
  }
});

test('a log of another origin, though its key is trusted: false', async () => {
  const it = await given({ log: smallLog('other.example/receipts') });
  const then = await it.when({ proof: await it.log.proof(4) });
  then(false, { pending: false, problem: 'origin' });
});

test('a checkpoint by no key of the set, by a receipt key, or by a key that is revoked: false', async () => {
  const it = await given();
  const proof = await it.log.proof(4);
  const own = it.log.key.record;
  for (const keys of [
    [],
    [{ ...own, purpose: 'receipt' as const }],
    [{ ...own, compromisedAt: iat + 1e6 }],
  ]) {
    (await it.when({ proof }, keys))(false, { pending: false, problem: 'checkpoint' });
  }
});

test('a checkpoint by a rotated key stays valid', async () => {
  const it = await given();
  const then = await it.when({ proof: await it.log.proof(4) }, [{ ...it.log.key.record, notAfter: iat - 5 }]);
  then(true, { pending: false, origin: ORIGIN, index: 4, size: 7 });
});

test('a text that is no receipt is never logged', async () => {
  const facts = await goodFacts(key, { jws: 'e30.e30.e30', job: null });
  const log: LogFacts = { proof: null, now: iat };
  const { checks } = await verifySignedReceipt({ ...facts, log }, primitives);
  assert.deepEqual(checks.at(-1), { name: 'receipt_logged', ok: false });
});
