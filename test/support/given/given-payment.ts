// What the tests of a payment's collection share: a payment met half-way, and what an answer comes to.

import assert from 'node:assert/strict';
import type { OperatorStatement } from '#src/domain/payment/resolve.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import { Fault, type Refused } from '#src/domain/refusal.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { type ResolveChain, resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { given, typesIn, type World, world } from '#test/support/world/fakes-world.ts';
import { type Answer, execute, FINGERPRINT, KEY_STREAM } from './given-call.ts';
import { keyClaimed as anyClaim, paymentReserved as anyReservation, PAYMENT_STREAM } from './given-events.ts';

/** The sample events, as the sample call would have left them. */
export const paymentReserved: typeof anyReservation = (changes) =>
  anyReservation({ fingerprint: FINGERPRINT, ...changes });
export const keyClaimed: typeof anyClaim = (changes) => anyClaim({ fingerprint: FINGERPRINT, ...changes });

/** How long another's settlement is left alone. */
export const SETTLEMENT_WATCH = 45_000;
export const unknown: SettleAnswer = { outcome: 'unknown', cause: 'timeout', transaction: null };
export const rejected: SettleAnswer = { outcome: 'rejected', reason: 'insufficient_funds' };

export const isUnconfirmed = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'payment_unconfirmed' && (error.retryAfterSeconds ?? 0) > 0;

export const isLogAway = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'event_log_unavailable' && (error.retryAfterSeconds ?? 0) > 0;

export const paymentTypes = (it: Pick<World, 'log'>) => typesIn(it, PAYMENT_STREAM);

/** The code of a refusal; else what the call came to. */
export const outcomeOf = (answer: Answer) =>
  answer.kind === 'refused' ? answer.refusal.refused : answer.kind;

/** The refusal of a call. Throws if it is not refused. */
export async function refusalOf(...call: Parameters<typeof execute>): Promise<Refused> {
  const answer = await execute(...call);
  assert.ok(answer.kind === 'refused', answer.kind);
  return answer.refusal;
}

/** The execution of a call that ran, or of one that was answered with the recorded result. */
export const ran = (...call: Parameters<typeof execute>) => executionOf('ran', call);
export const replayed = (...call: Parameters<typeof execute>) => executionOf('replayed', call);

async function executionOf(kind: 'ran' | 'replayed', call: Parameters<typeof execute>): Promise<Execution> {
  const answer = await execute(...call);
  assert.equal(outcomeOf(answer), kind);
  assert.ok(answer.kind !== 'refused');
  return answer.execution;
}

const MAY_WAIT = ['idempotency_in_progress', 'too_many_in_flight', 'replayed'];

/** One ran; all others got 409 or its replay. */
export function assertOneRan(answers: readonly Answer[]): void {
  const outcomes = answers.map(outcomeOf);
  assert.equal(outcomes.filter((outcome) => outcome === 'ran').length, 1);
  const others = new Set(outcomes.filter((outcome) => outcome !== 'ran'));
  for (const outcome of others) assert.ok(MAY_WAIT.includes(outcome), outcome);
}

/** A process that meets a payment in the middle of another's settlement. */
export async function meets(...events: Parameters<typeof given>[2][]) {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), ...events);
  await given(it, KEY_STREAM, keyClaimed());
  return it;
}

/** What an operator records without an answer of the chain. Throws if it is not recorded. */
export async function stateByHand(
  deps: JournalDeps,
  id: string,
  verdict: OperatorStatement['verdict'],
): Promise<void> {
  const chain: ResolveChain = {
    lookUp: async () => ({ outcome: 'unavailable' }),
    isSettledBy: async () => null,
  };
  const statement = { verdict, reason: 'No node answers.' };
  const resolved = await resolvePayment({ ...deps, chain }, { id, statement });
  if (resolved.kind !== 'recorded') throw new Error(resolved.kind);
}
