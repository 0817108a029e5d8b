// What the tests of a payment's collection share: a payment met half-way, and what an answer comes to.
import assert from 'node:assert/strict';
import { Fault } from '#src/domain/refusal.ts';
import type { Settled } from '#src/ports/payments.ts';
import { given, typesIn, type World, world } from './fakes-world.ts';
import { CLAIM_STREAM, keyClaimed, PAYMENT_STREAM, paymentReserved } from './given-events.ts';

/** How long another's settlement is left alone. */
export const SETTLEMENT_WATCH = 45_000;
export const unknown: Settled = { outcome: 'unknown', cause: 'timeout' };
export const rejected: Settled = { outcome: 'rejected', reason: 'insufficient_funds' };

export const isUnconfirmed = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'payment_unconfirmed' && (error.retryAfterSeconds ?? 0) > 0;

export const paymentTypes = (it: Pick<World, 'log'>) => typesIn(it, PAYMENT_STREAM);

type Answer = { readonly kind: string; readonly refusal?: { readonly refused: string } };

export const refusalOf = (answer: Answer) =>
  answer.kind === 'refused' ? answer.refusal?.refused : answer.kind;

/** One ran; all others wait for it, or replay it. */
export function assertOneRan(answers: readonly Answer[]): void {
  const outcomes = answers.map(refusalOf);
  assert.equal(outcomes.filter((outcome) => outcome === 'ran').length, 1);
  const others = new Set(outcomes.filter((outcome) => outcome !== 'ran'));
  for (const outcome of others)
    assert.ok(outcome === 'idempotency_in_progress' || outcome === 'completed', String(outcome));
}

/** A process that meets a payment in the middle of another's settlement. */
export async function meets(...events: Parameters<typeof given>[2][]) {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), ...events);
  await given(it, CLAIM_STREAM, keyClaimed());
  return it;
}
