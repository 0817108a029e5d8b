// A paying caller's slot: the calls that run and the payments that nobody could confirm yet share one limit.
import { LIMITS } from '#src/domain/limits.ts';
import { isBound, isSurelyOver } from '#src/domain/payment/state.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { loadPayment } from '#src/usecases/event-streams.ts';
import type { Known } from './idempotency.ts';
import type { Slot, Slots } from './slots.ts';
import type { OpenUnknowns } from './unconfirmed-payments.ts';

export type PaidSlotDeps = {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
  readonly slots: Slots;
  readonly unknowns: OpenUnknowns;
};

/** How many streams are read again before a call is refused because of them. */
const READ_AGAIN_MAX = 8;

/**
 * Open payments stand against new ones only: whoever repeats one of them brings it to its end, and is never refused
 * for the others' sake.
 */
export async function takePaidSlot(
  deps: PaidSlotDeps,
  account: string,
  stream: string,
  known: Known,
): Promise<Slot | Refused<'too_many_in_flight'>> {
  const { slots, unknowns } = deps;
  const open = () => (known.kind === 'new' ? unknowns.waiting(account, stream) : []);
  const take = (waiting: number) => slots.take(account, LIMITS.inFlightPerPayer.max - waiting);
  if (known.kind === 'resume' && known.streams.payment?.state.status === 'unknown') {
    unknowns.add(account, stream);
  }
  const before = open();
  let slot = take(before.length);
  if (typeof slot !== 'function' && before.length > 0) {
    await dropResolved(deps, before.slice(0, READ_AGAIN_MAX));
    const after = open().length;
    slot = take(after);
    if (typeof slot !== 'function' && after > 0) return confirmFirst();
  }
  if (typeof slot !== 'function') return slot;
  return working(slot, unknowns.begin(stream));
}

/**
 * What was resolved elsewhere, by another process or by hand; and what can move no money any more, so that whoever gave
 * an unconfirmed payment up is not shut out for good.
 */
async function dropResolved(
  { log, clock, unknowns }: PaidSlotDeps,
  streams: readonly string[],
): Promise<void> {
  const views = await Promise.all(streams.map((stream) => loadPayment(log, stream)));
  for (const { stream, state } of views) {
    const open = isBound(state) && state.status !== 'settled';
    if (!open || isSurelyOver(state.reserved, clock.now() / 1000)) unknowns.drop(stream);
  }
}

const working =
  (slot: Slot, done: () => void): Slot =>
  () => {
    done();
    slot();
  };

const confirmFirst = () =>
  refused(
    'too_many_in_flight',
    'Too many calls are in flight, payments that are not confirmed yet among them: repeat those first.',
    { retryAfterSeconds: 5 },
  );
