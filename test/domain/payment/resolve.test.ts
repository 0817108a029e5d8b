// What an operator may record of a payment whose fate is open: given its events, when the chain answers or does not.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { type PaymentResolution, resolveByChain, resolveByHand } from '#src/domain/payment/resolve.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { givenPayment } from '#test/support/given/given.ts';
import {
  at,
  hex,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';

const TX = `0x${hex('a')}`;
/** The first second after which the sample authorization can never be used. */
const OVER_MS = 181_000;
const NOW = at(OVER_MS);

const reserved = [paymentReserved()];
const unknown = [...reserved, settlementUnknown()];
const retried = [...unknown, settlementRetried()];
const rejected = [...unknown, paymentRejected({ evidence: 'operator' })];
const released = [...reserved, paymentReleased()];
const missing = [...reserved, paymentSettled(), paymentMissing()];
const open = { reserved, unknown, retried };
const paid: ChainFinding = { outcome: 'paid', transaction: TX };
const unused = (seconds: number): ChainFinding => ({
  outcome: 'unused',
  chainTimeSeconds: T0 / 1000 + seconds,
});

const byChain = (events: readonly PaymentEvent[], finding: ChainFinding) =>
  resolveByChain(givenPayment(...events).state, finding, NOW);
const recorded = (event: PaymentEvent) => ({ kind: 'recorded', event }) as PaymentResolution;
const settled = paymentSettled({ transaction: TX, evidence: 'chain', settledAt: NOW });
const rejectedFor = (reason: string) => paymentRejected({ reason, evidence: 'chain', rejectedAt: NOW });

describe('by the chain', () => {
  for (const [status, events] of Object.entries(open)) {
    test(`${status}: paid, never to be paid, or nothing yet`, () => {
      assert.deepEqual(byChain(events, paid), recorded(settled));
      assert.deepEqual(byChain(events, unused(181)), recorded(rejectedFor('unused_after_expiry')));
      assert.deepEqual(
        byChain(events, { outcome: 'cancelled' }),
        recorded(rejectedFor('authorization_cancelled')),
      );
      const elsewhere = byChain(events, { outcome: 'spent_elsewhere' });
      assert.deepEqual(elsewhere, recorded(rejectedFor('authorization_spent_elsewhere')));
      const validBefore = Number(paymentReserved().data.validBefore);
      assert.deepEqual(byChain(events, unused(180)), { kind: 'too_early', validBefore });
      assert.deepEqual(byChain(events, { outcome: 'unavailable' }), { kind: 'chain_unavailable' });
    });
  }

  test('rejected, released or missing: the money is in if the chain shows it, and nothing else is recorded', () => {
    for (const events of [rejected, released, missing]) {
      assert.deepEqual(byChain(events, paid), recorded(settled));
      for (const finding of [unused(181), { outcome: 'cancelled' }, { outcome: 'spent_elsewhere' }] as const)
        assert.deepEqual(byChain(events, finding), { kind: 'confirmed' });
      assert.deepEqual(byChain(events, { outcome: 'unavailable' }), { kind: 'chain_unavailable' });
    }
  });

  test('absent, charged, in refund, refunded: nothing to resolve, whatever the chain shows', () => {
    const charged = [...reserved, paymentSettled()];
    const refunding = [...charged, refundBegun()];
    for (const events of [[], charged, refunding, [...refunding, paymentRefunded()]])
      assert.deepEqual(byChain(events, paid), { kind: 'nothing_to_resolve' });
    const lost = [...refunding, paymentMissing()];
    assert.deepEqual(byChain(lost, paid), recorded(settled));
  });
});

describe('by hand', () => {
  const reason = 'The node lost its logs; two explorers show the transfer.';
  const byHand = (events: readonly PaymentEvent[], verdict: 'settled' | 'not_settled', now = NOW) =>
    resolveByHand(
      givenPayment(...events).state,
      { verdict: verdict === 'settled' ? { kind: verdict, transaction: TX } : { kind: verdict }, reason },
      now,
    );

  test('settled: recorded as the operator’s statement, with the reason; also of a rejected payment', () => {
    const statement = paymentSettled({
      transaction: TX,
      evidence: 'operator',
      settledAt: NOW,
      statement: reason,
    });
    for (const events of [reserved, unknown, retried, rejected, released])
      assert.deepEqual(byHand(events, 'settled'), recorded(statement));
  });

  test('not settled: one minute after the authorization has expired, and never of a charge', () => {
    const statement = paymentRejected({
      reason: 'operator_not_settled',
      evidence: 'operator',
      rejectedAt: NOW,
      statement: reason,
    });
    for (const events of Object.values(open)) {
      assert.deepEqual(byHand(events, 'not_settled'), recorded(statement));
      const early = byHand(events, 'not_settled', at(OVER_MS - 1));
      assert.deepEqual(early.kind, 'too_early');
    }
    for (const events of [[], rejected, released, missing, [...reserved, paymentSettled()]])
      assert.deepEqual(byHand(events, 'not_settled'), { kind: 'nothing_to_resolve' });
    assert.deepEqual(byHand(missing, 'settled'), { kind: 'nothing_to_resolve' });
  });
});
