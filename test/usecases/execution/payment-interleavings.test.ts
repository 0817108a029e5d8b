// Any order in which callers, processes, the log, the facilitator and time may come: money moves at most once for a
// payment, buys at most one job, and no caller is asked to pay again for what has been paid.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { STREAM } from '#src/domain/events.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { Authorization, PresentedPayment } from '#src/ports/payments.ts';
import { quiet } from '#test/support/fakes.ts';
import { nonceUsed, otherPayment } from '#test/support/fakes-payments.ts';
import { type Shared, shared, type World, world } from '#test/support/fakes-world.ts';
import { type Answer, execute, paidWith } from '#test/support/given-call.ts';
import { outcomeOf, SETTLEMENT_WATCH } from '#test/support/given-payment.ts';
import { runs } from '#test/support/property-runs.ts';

/** What a settle call comes to. `lost`: the money moves and the answer does not arrive. */
const SETTLES = ['settles', 'lost', 'unknown', 'nonce used', 'terminal'] as const;
type Settles = (typeof SETTLES)[number];

const PAYMENTS = [otherPayment('1'), otherPayment('2')] as const;
const PROCESSES = 3;

type Caller = { readonly process: number; readonly payment: 0 | 1; readonly key: 'k1' | 'k2' | null };
type Story = {
  readonly callers: readonly Caller[];
  readonly settles: readonly Settles[];
  /** How often time passes while calls are under way, each as long as a settlement is waited for. */
  readonly pauses: number;
  /** Whether the node of the chain answers. */
  readonly chain: boolean;
};

const UNKNOWN: SettleAnswer = { outcome: 'unknown', cause: 'timeout', transaction: null };

/** A deployment whose every step outside the process is taken in the order that the scheduler draws. */
function deployment(s: fc.Scheduler, { settles, chain }: Pick<Story, 'settles' | 'chain'>) {
  const common = shared();
  const { payments, log } = common;
  const step = <A extends readonly unknown[], R>(name: string, act: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      await s.schedule(Promise.resolve(), name);
      const result = await act(...args).then(
        (value) => () => value,
        (cause: unknown) => () => {
          throw cause;
        },
      );
      await s.schedule(Promise.resolve(), `${name} answers`);
      return result();
    };
  };
  const node = { up: chain };
  const them: World[] = [];
  const chainSeconds = (): number => Math.floor((them[0] as World).clock.now() / 1000);
  const expired = ({ validBefore }: PresentedPayment) => chainSeconds() > Number(validBefore);
  const move = (payment: PresentedPayment): SettleAnswer => {
    if (payments.ledger.has(payment.nonce)) return nonceUsed;
    return expired(payment) ? { outcome: 'rejected', reason: 'expired' } : payments.move(payment);
  };
  const settle = (payment: PresentedPayment, how: Settles): SettleAnswer => {
    if (how === 'settles') return move(payment);
    if (how === 'terminal') return { outcome: 'rejected', reason: 'insufficient_funds' };
    if (how === 'nonce used') return nonceUsed;
    if (how === 'lost') move(payment);
    return UNKNOWN;
  };
  payments.scriptSettle(...settles.map((how) => (payment: PresentedPayment) => settle(payment, how)));
  const ports = {
    ...payments,
    verify: step('verify', payments.verify),
    settle: step('settle', async (payment: PresentedPayment) => {
      const known = payments.calls.settle < settles.length;
      return known ? payments.settle(payment) : move(payment);
    }),
    lookUp: step('lookUp', async ({ nonce }: Authorization) => {
      if (!node.up) return { outcome: 'unavailable' } as const;
      const transaction = payments.ledger.get(nonce);
      if (transaction !== undefined) return { outcome: 'paid', transaction } as const;
      return { outcome: 'unused', chainTimeSeconds: chainSeconds() } as const;
    }),
  };
  const append = async (...[stream, expected, events]: Parameters<typeof log.append>) => {
    const stored = await log.append(stream, expected, events);
    const [event] = events;
    const moved = PAYMENTS.some(
      ({ hash, nonce }) => stream === STREAM.payment(hash) && payments.ledger.has(nonce),
    );
    if (event?.type === 'PaymentRejected') assert.equal(moved, false, 'rejected, and the money has moved');
    return stored;
  };
  const stepped = { ...log, append: step('append', append), readStream: step('read', log.readStream) };
  for (let i = 0; i < PROCESSES; i++) them.push(world(common, { log: stepped, payments: ports }));
  return { common, them, node };
}

const pass = (them: readonly World[], ms: number) => {
  for (const { clock } of them) clock.advance(ms);
};

type End = { readonly payment: 0 | 1; readonly outcome: string };

/**
 * Calls once. A 402 must find no money moved, unless it was another call of the same payment that moved it: after this
 * one had been rejected, and written down so.
 */
async function call({ payments, log }: Shared, them: readonly World[], caller: Caller): Promise<End> {
  const { payment: index, key, process } = caller;
  const payment = PAYMENTS[index];
  const before = log.events.length;
  const outcome = await execute(them[process] as World, paidWith(payment, { key })).then(
    (answer: Answer) => outcomeOf(answer),
    (error: unknown) => {
      if (error instanceof Fault) return error.code;
      throw error;
    },
  );
  if (outcome === 'payment_required' && payments.ledger.has(payment.nonce)) {
    const since = log.events.slice(before).filter(({ stream }) => stream === STREAM.payment(payment.hash));
    assert.ok(
      since.some(({ type }) => type === 'PaymentRejected'),
      'a 402 for money that has moved',
    );
  }
  return { payment: index, outcome };
}

/** In the order of the log: a job starts once for a payment, after its money was found to be in. */
function assertOneJobEach({ log, payments }: Shared, them: readonly World[]): void {
  const settled = new Set<string>();
  const started = new Set<string>();
  for (const { stream, type, data } of log.events) {
    if (type === 'PaymentSettled') settled.add(stream);
    if (type !== 'JobStarted') continue;
    const paidBy = String(data.paymentStream);
    assert.ok(settled.has(paidBy), 'a job without its money');
    assert.ok(!started.has(paidBy), 'a second job for one payment');
    started.add(paidBy);
  }
  const sent = them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0);
  assert.ok(sent <= started.size, 'more calls than jobs');
  assert.ok(started.size <= payments.ledger.size, 'a job for money that never moved');
}

const MAY_BE = new Set([
  'ran',
  'replayed',
  'payment_required',
  'payment_unconfirmed',
  'payment_reused',
  'idempotency_in_progress',
  'idempotency_conflict',
  'too_many_in_flight',
  'event_log_unavailable',
]);

type Played = Shared & { readonly them: readonly World[]; readonly node: { up: boolean } };

async function play(s: fc.Scheduler, story: Story): Promise<Played> {
  const { common, them, node } = deployment(s, story);
  const time = Array.from({ length: story.pauses }, async () => {
    await s.schedule(Promise.resolve(), 'time passes');
    pass(them, SETTLEMENT_WATCH);
  });
  const calls = story.callers.map((caller) => call(common, them, caller));
  const [ends] = await s.waitFor(Promise.all([Promise.all(calls), ...time]));
  for (const { outcome } of ends) assert.ok(MAY_BE.has(outcome), outcome);
  // What continues after the callers were asked to repeat.
  while (s.count() > 0) {
    await s.waitAll();
    await quiet();
  }
  assertOneJobEach(common, them);
  return { ...common, them, node };
}

const caller = (payments: readonly (0 | 1)[], keys: readonly Caller['key'][]): fc.Arbitrary<Caller> =>
  fc.record({
    process: fc.nat(PROCESSES - 1),
    payment: fc.constantFrom(...payments),
    key: fc.constantFrom(...keys),
  });

const storyOf = (callers: fc.Arbitrary<Caller>): fc.Arbitrary<Story> =>
  fc.record({
    callers: fc.array(callers, { minLength: 2, maxLength: 6 }),
    settles: fc.array(fc.constantFrom(...SETTLES), { maxLength: 6 }),
    pauses: fc.nat(4),
    chain: fc.boolean(),
  });

/** Repeats the payment one call at a time until it is served, or surely never moved. The node of the chain answers again. */
async function persist(s: fc.Scheduler, it: Played, last: Caller): Promise<string> {
  it.node.up = true;
  let outcome = 'never asked';
  for (let i = 0; i < 15; i++) {
    pass(it.them, SETTLEMENT_WATCH);
    ({ outcome } = await s.waitFor(call(it, it.them, last)));
    if (outcome === 'ran' || outcome === 'replayed') return outcome;
  }
  return outcome;
}

test('one payment, many callers: one money movement, one job; a caller that repeats is served, or was never charged', async () => {
  let served = 0;
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), storyOf(caller([0], ['k1'])), async (s, story) => {
      const it = await play(s, story);
      const outcome = await persist(s, it, { process: 0, payment: 0, key: 'k1' });
      const moved = it.payments.ledger.size === 1;
      if (moved) assert.ok(['ran', 'replayed'].includes(outcome), outcome);
      else assert.ok(['payment_required', 'payment_unconfirmed'].includes(outcome), outcome);
      if (moved) served++;
      assertOneJobEach(it, it.them);
    }),
    { numRuns: runs(400), seed: 402 },
  );
  assert.ok(served > runs(400) / 4, 'the stories are about money that moves');
});

test('two payments and two keys in any mixture: each payment moves its money once at most, and buys one job at most', async () => {
  let both = 0;
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), storyOf(caller([0, 1], ['k1', 'k2', null])), async (s, story) => {
      const it = await play(s, story);
      if (it.payments.ledger.size === 2) both++;
    }),
    { numRuns: runs(400), seed: 3000 },
  );
  assert.ok(both > runs(400) / 20, 'some stories move both');
});

test('one key and a new payment on every repeat, with a chain: one charge, one job; a payer that persists is served', async () => {
  let served = 0;
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), storyOf(caller([0, 1], ['k1'])), fc.nat(1), async (s, story, last) => {
      const it = await play(s, { ...story, chain: true });
      const payment = last === 0 ? 0 : 1;
      const outcome = await persist(s, it, { process: 0, payment, key: 'k1' });
      // The money of a payment that was answered 402 never moved; every other one is served in the end.
      assert.ok(['ran', 'replayed', 'payment_required', 'payment_unconfirmed'].includes(outcome), outcome);
      const started = it.log.events.filter(({ type }) => type === 'JobStarted').length;
      assert.deepEqual([it.payments.ledger.size, started], [started, started]);
      assert.ok(started <= 1, 'one job for one key');
      if (['ran', 'replayed'].includes(outcome)) served++;
      assertOneJobEach(it, it.them);
    }),
    { numRuns: runs(400), seed: 15 },
  );
  assert.ok(served > runs(400) / 4, `the stories are about calls that are served: ${served}`);
});
