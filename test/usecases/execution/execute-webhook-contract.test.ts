// Contract wallets: who signed is unknown until the facilitator has verified it, and no claim of a caller replaces that.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import type { PresentedPayment, Verified } from '#src/ports/payments.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, execute, paidWith } from '#test/support/given/given-call.ts';
import { hex } from '#test/support/given/given-events.ts';
import { isUnconfirmed, outcomeOf, refusalOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { letPass, quiet, succeeding } from '#test/support/world/fakes.ts';
import { enterAll } from '#test/support/world/fakes-admission.ts';
import { shared, type World, world } from '#test/support/world/fakes-world.ts';

const contract = { signer: 'contract' } as const;
const FORGED = hex('0');
/** The contract wallet's own payment, and another payment that merely names the same wallet. */
const own = paidWith(presentedPayment(contract));
const spoofed = (digit = '4', more: CallChanges = {}) =>
  paidWith({ ...otherPayment(digit), ...contract, payloadHash: FORGED }, more);
const invalid = { outcome: 'invalid', reason: 'invalid_signature' } as const;

/** A process that has not been asked yet, beside the one that executed. */
async function afterOwn() {
  const common = shared();
  assert.equal(outcomeOf(await execute(world(common), own)), 'ran');
  common.steps.length = 0;
  return world(common);
}

// ── its own payment ─────────────────────────────────────────────────────────────────────────────────────

test('a known payment with the same signed payload replays without a facilitator call', async () => {
  const it = await afterOwn();
  it.payments.scriptVerify({ outcome: 'unavailable' });
  assert.equal(outcomeOf(await execute(it, own)), 'replayed');
  assert.deepEqual(it.steps, []);
});

test('an unconfirmed payment with the same signed payload resumes without a second verify', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(execute(it, own), isUnconfirmed);
  assert.equal(outcomeOf(await execute(it, own)), 'ran');
  assert.equal(it.payments.calls.verify, 1);
});

// ── what only its key knows ─────────────────────────────────────────────────────────────────────────────

test('payment_required: a payment that only names the wallet gets nothing that its key knows: not the replay, not a conflict, not a job in progress', async () => {
  const it = await afterOwn();
  it.payments.scriptVerify(invalid, invalid);
  for (const call of [spoofed(), spoofed('5', { request: { body: 'guess' } })]) {
    const answer = await refusalOf(it, call);
    assert.deepEqual([answer.refused, answer.details], ['payment_required', { reason: 'invalid_signature' }]);
  }
  assert.equal(it.payments.calls.verify, 3, 'one for each, and the first one’s own');

  const running = world();
  const { frozen, open } = gate();
  running.outbound.script(() => frozen(async () => succeeding()));
  const first = execute(running, own);
  await quiet();
  running.payments.scriptVerify(invalid);
  assert.equal(outcomeOf(await execute(running, spoofed())), 'payment_required');
  open();
  assert.equal(outcomeOf(await first), 'ran');
});

test('facilitator_unavailable: nor while no one can verify it', async () => {
  const it = await afterOwn();
  it.payments.scriptVerify({ outcome: 'unavailable' });
  await assert.rejects(execute(it, spoofed()), (error) => {
    assert.ok(error instanceof Fault);
    return error.code === 'facilitator_unavailable' && error.retryAfterSeconds === 5;
  });
});

test('too_many_in_flight: nor while 16 others are being verified', async () => {
  const it = await afterOwn();
  const places = enterAll(it.deps.verifies);
  assert.equal(outcomeOf(await letPass(it.clock, execute(it, spoofed()))), 'too_many_in_flight');
  for (const leave of places) leave();
  assert.equal(outcomeOf(await execute(it, spoofed())), 'replayed');
});

test('a verified payment of the wallet with a known key: the stored result, uncharged; a conflict for another request', async () => {
  const it = await afterOwn();
  assert.equal(outcomeOf(await execute(it, spoofed())), 'replayed');
  assert.equal(outcomeOf(await execute(it, spoofed('5', { request: { body: 1 } }))), 'idempotency_conflict');
  assert.deepEqual([it.payments.calls.settle, it.payments.ledger.size, it.outbound.sent.length], [1, 1, 0]);
});

test('verified once a call: if its key is released during the verify, it continues as a new one', async () => {
  const it = await afterOwn();
  it.payments.scriptVerify(() => {
    it.clock.skew(8 * 86_400_000);
    return { outcome: 'valid' };
  });
  const before = it.payments.calls.verify;
  assert.equal(outcomeOf(await execute(it, spoofed())), 'ran');
  assert.equal(it.payments.calls.verify, before + 1);
});

test('a copy of the wallet’s payment that is verified only after the first has settled: replayed, never a 402', async () => {
  const common = shared();
  common.payments.scriptVerify(async () => {
    assert.equal(outcomeOf(await execute(world(common), own)), 'ran');
    return { outcome: 'invalid', reason: 'nonce_used' };
  });
  assert.equal(outcomeOf(await execute(world(common), own)), 'replayed');
});

test('invalid, and the key became known meanwhile: still a 402, since only the payment itself could answer', async () => {
  const common = shared();
  common.payments.scriptVerify(async () => {
    assert.equal(outcomeOf(await execute(world(common), own)), 'ran');
    return invalid;
  });
  assert.equal(outcomeOf(await execute(world(common), spoofed())), 'payment_required');
});

// ── how often ───────────────────────────────────────────────────────────────────────────────────────────

/** The facilitator does not answer for forged payments until opened; then it refuses them. */
function hangingForgeries(it: World) {
  const { frozen, open } = gate();
  const answer = ({ payloadHash }: PresentedPayment): Verified | Promise<Verified> =>
    payloadHash === FORGED ? frozen(async () => invalid) : { outcome: 'valid' };
  it.payments.scriptVerify(...Array<typeof answer>(6).fill(answer));
  return open;
}

const CLIENT = '198.51.100.1';
const elsewhere = (call: CallChanges): CallChanges => ({ ...call, client: '198.51.100.2' });

test('rate_limited: 5 failed calls a minute of one client name one wallet, and the sixth is not verified', async () => {
  const it = world();
  it.payments.scriptVerify(...Array(5).fill(invalid));
  for (const digit of ['3', '4', '5', '6', '7']) {
    assert.equal(outcomeOf(await execute(it, spoofed(digit))), 'payment_required');
  }
  const sixth = await refusalOf(it, spoofed('8'));
  assert.deepEqual([sixth.refused, sixth.retryAfterSeconds], ['rate_limited', 60]);
  assert.equal(it.payments.calls.verify, 5);
  assert.equal(outcomeOf(await execute(it)), 'ran', 'the same address by its own key is another matter');
  const { payer } = presentedPayment();
  const failures = it.quota.calls.filter(({ how, rule }) => how === 'take' && /wallet/.test(rule.name));
  const [counted] = failures.map(({ rule, key }) => [rule.name, rule.maxRequests, key]);
  assert.deepEqual(counted, ['contract-wallet', 5, `${CLIENT} ${payer}`]);
});

test('calls that succeed are no failed attempts: a wallet is served as often as any other payer', async () => {
  const it = world();
  for (let i = 0; i < 8; i++) {
    const call = paidWith({ ...otherPayment(String(i)), ...contract }, { key: null });
    assert.equal(outcomeOf(await execute(it, call)), 'ran');
  }
});

test('a wallet’s own payment is served, however many calls name the wallet: no rate and no slot of theirs is its own', async () => {
  const common = shared();
  common.payments.scriptSettle((payment) => {
    common.payments.move(payment);
    return unknown;
  });
  common.payments.scriptLookUp({ outcome: 'unavailable' });
  await assert.rejects(execute(world(common), own), isUnconfirmed);
  // A process that knows of no open payment, so that those calls take all the slots there are for the client.
  const it = world(common);
  const open = hangingForgeries(it);
  const naming = Array.from({ length: 5 }, (_, i) => execute(it, spoofed(String(i), { key: null })));
  await quiet();
  assert.equal(it.slots.inFlight(), 4);
  const another = paidWith({ ...otherPayment('7'), ...contract }, { key: null });
  assert.equal(outcomeOf(await execute(it, elsewhere(another))), 'ran', 'a new payment of another client');
  assert.equal(outcomeOf(await execute(it, own)), 'ran');
  open();
  await Promise.all(naming);
  for (let i = 0; i < 10; i++) assert.equal(outcomeOf(await execute(it, own)), 'replayed');
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length], [2, 2]);
});

test('a wallet’s payment that was rejected proves nothing any more: the next tries are counted', async () => {
  const it = world();
  it.payments.scriptSettle(...Array(5).fill(rejected));
  for (let i = 0; i < 5; i++) assert.equal(outcomeOf(await execute(it, own)), 'payment_required');
  assert.equal(outcomeOf(await execute(it, own)), 'rate_limited');
});

test('a call that only names a wallet takes no slot and no rate from who signs with that address’s own key', async () => {
  const it = world();
  const open = hangingForgeries(it);
  const naming = Array.from({ length: 4 }, (_, i) => execute(it, spoofed(String(i), { key: null })));
  await quiet();
  assert.equal(it.slots.inFlight(), 4);
  assert.equal(outcomeOf(await execute(it)), 'ran');
  open();
  for (const answer of await Promise.all(naming)) assert.equal(outcomeOf(answer), 'payment_required');
  const { payer } = presentedPayment();
  const rates = it.quota.calls.filter(({ rule }) => rule.name === 'payer').map(({ key }) => key);
  assert.deepEqual(rates, [...Array(4).fill(`contract ${payer} ${CLIENT}`), payer]);
});
