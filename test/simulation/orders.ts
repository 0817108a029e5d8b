// Clients that order schedules: they pay for one run after another, repeat what was not answered, cancel schedules and
// authorizations, and give up waiting.
import { Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { iso } from '#src/lib/iso.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Bought, Buyer } from '#src/usecases/schedules/buy-run.ts';
import type { Random } from '#test/support/world/random.ts';
import { cancelPayment, type Market, signPayment } from './buyers.ts';
import { EPOCH } from './host.ts';
import type { Schedules } from './relay.ts';

/** One schedule that a client wants. */
export type Order = {
  readonly id: number;
  readonly payer: string;
  readonly client: string;
  readonly path: string;
  readonly runs: number;
  /** null: any. */
  readonly catchUpSeconds: number | null;
  readonly payments: PresentedPayment[];
  readonly calls: { readonly relay: string; isResolved: boolean }[];
  /** Of the schedules that it was sold: more than one if calls are free and an answer was lost. */
  readonly scheduleIds: Set<string>;
};

export type OrderMarket = Market & {
  readonly tickets: Map<string, PresentedPayment>;
  /** An answer that no client may get. */
  onDefect(detail: string): void;
  onBought(order: Order, bought: Bought): void;
  /** Whether a run of these schedules is not over. */
  isOpen(scheduleIds: ReadonlySet<string>): boolean;
  /** What strangers have presented. */
  readonly foreign: PresentedPayment[];
  onForeignRun(detail: string): void;
};

const ROUNDS_MAX = 10;

export function drawOrder(
  random: Random,
  id: number,
  { isPaid, catchUpSeconds }: { readonly isPaid: boolean; readonly catchUpSeconds: number | null },
): Order {
  return {
    id,
    payer: isPaid ? `0x${'c'.repeat(38)}0${id % 10}` : 'demo',
    client: `client ${id % 3}`,
    path: `/run/${id}`,
    runs: random.pick([1, 1, 2, 3]),
    catchUpSeconds,
    payments: [],
    calls: [],
    scheduleIds: new Set(),
  };
}

function drawRequest(random: Random, { path, catchUpSeconds }: Order, now: number): ScheduleRequest {
  const at = iso(EPOCH + now + random.between(8000, 70_000));
  return {
    webhook: {
      url: `https://target.example${path}`,
      method: 'POST',
      body: { path },
      timeoutMs: random.pick([1000, 5000]),
      retry: { attempts: random.pick([1, 1, 2]), backoffMs: 250 },
    },
    schedule: random.chance(0.4)
      ? { type: 'once', runAt: at }
      : { type: 'interval', everyMinutes: 1, startAt: at },
    catchUpSeconds: catchUpSeconds ?? random.pick([0, 20, 60]),
  };
}

/** Orders, pays for the runs, sometimes cancels, and waits until the runs are over or the faults end. */
export async function order(market: OrderMarket, random: Random, it: Order): Promise<void> {
  const { scheduler } = market;
  await scheduler.sleep(random.between(0, 20_000));
  const request = drawRequest(random, it, scheduler.now);
  const first = await purchase(market, random, it, request);
  if (first === null) return;
  const scheduleId = first.schedule.defined.scheduleId;
  const cancels =
    first.cancelToken !== null && random.chance(0.3)
      ? cancelOrder(market, random, { scheduleId, token: first.cancelToken })
      : null;
  for (let run = 1; run < it.runs; run++) {
    await scheduler.sleep(random.between(0, 15_000));
    if ((await purchase(market, random, it, scheduleId, market.isPaid ? null : first.cancelToken)) === null)
      break;
  }
  await cancels;
  while (!market.isCalm() && market.isOpen(it.scheduleIds)) await scheduler.sleep(5000);
}

/** One run, with one payment until it is bought or refused. null: it is not. */
async function purchase(
  market: OrderMarket,
  random: Random,
  it: Order,
  what: ScheduleRequest | string,
  token: string | null = null,
): Promise<Bought | null> {
  let payment: PresentedPayment | null = null;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const quoted = await ask(market, random, it, (relay) => relay.quote(what));
    if (quoted !== null && isRefused(quoted)) return null;
    if (quoted !== null) {
      if (market.isPaid && payment === null) {
        const lifeSeconds = quoted.maxTimeoutSeconds - (random.chance(0.3) ? 50 : 0);
        payment = signPayment(random, it.payer, market.scheduler.now, lifeSeconds);
        it.payments.push(payment);
        market.tickets.set(payment.nonce, payment);
        if (random.chance(0.1)) void cancelPayment(market, random, payment, 60_000);
      }
      const buyer: Buyer = {
        presented: payment,
        payer: it.payer,
        client: it.client,
        token,
      };
      const copies = random.chance(0.8) ? 1 : 2;
      const answers = await Promise.all(
        Array.from({ length: copies }, () => buyOnce(market, random, it, what, buyer)),
      );
      const bought = answers.find((answer): answer is Bought => answer !== null && !isRefused(answer));
      if (bought !== undefined) return bought;
      const refusals = answers.flatMap((answer) => (answer === null ? [] : [(answer as Refused).refused]));
      if (refusals.includes('payment_required') || refusals.includes('payment_reused')) payment = null;
      if (refusals.includes('invalid_schedule')) return null;
    }
    await market.scheduler.sleep(random.between(100, 8000));
  }
  return null;
}

async function buyOnce(
  market: OrderMarket,
  random: Random,
  it: Order,
  what: ScheduleRequest | string,
  buyer: Buyer,
): Promise<Bought | Refused | null> {
  const { trace } = market;
  const answer = await ask(market, random, it, async (relay, name) => {
    const nonce = buyer.presented === null ? 'free' : `payment ${buyer.presented.nonce.slice(2, 8)}`;
    trace.note(`client of schedules ${it.id} buys a run of ${name}, ${nonce}`);
    const bought = typeof what === 'string' ? await relay.fund(what, buyer) : await relay.create(what, buyer);
    if (!isRefused(bought)) market.onBought(it, bought);
    return bought;
  });
  const text = answer === null ? 'no answer' : isRefused(answer) ? answer.refused : `run ${answer.run.run}`;
  trace.note(`client of schedules ${it.id} gets ${text}`);
  trace.reached(`schedule: ${answer !== null && !isRefused(answer) ? 'bought' : text}`);
  return answer;
}

const STRANGER = `0x${'d'.repeat(40)}`;

/** Somebody who has read the ids of schedules in receipts, and has money: buys runs of schedules of others. */
export async function meddle(market: OrderMarket, random: Random, orders: readonly Order[]): Promise<void> {
  const { scheduler, trace, foreign, tickets, isPaid } = market;
  while (!market.isCalm()) {
    await scheduler.sleep(random.between(5000, 40_000));
    const ids = orders.flatMap(({ scheduleIds }) => [...scheduleIds]);
    if (ids.length === 0 || market.isCalm()) continue;
    const presented = isPaid ? signPayment(random, STRANGER, scheduler.now, 240) : null;
    if (presented !== null) {
      foreign.push(presented);
      tickets.set(presented.nonce, presented);
    }
    const buyer = { presented, payer: isPaid ? STRANGER : 'demo', client: 'a stranger', token: null };
    const scheduleId = random.pick(ids);
    const answer = await ask(market, random, { id: 0, calls: [] }, (relay, name) => {
      trace.note(`a stranger buys a run of ${scheduleId.slice(0, 12)} from ${name}`);
      return relay.fund(scheduleId, buyer);
    });
    if (answer === null) continue;
    trace.reached(`stranger: ${isRefused(answer) ? answer.refused : 'bought'}`);
    if (!isRefused(answer))
      market.onForeignRun(`a stranger has bought run ${answer.run.run} of ${scheduleId}`);
  }
}

async function cancelOrder(
  market: OrderMarket,
  random: Random,
  { scheduleId, token }: { readonly scheduleId: string; readonly token: string },
): Promise<void> {
  const { scheduler, trace } = market;
  await scheduler.sleep(random.between(0, 90_000));
  const it = { id: 0, calls: [] };
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const answer = await ask(market, random, it, (relay, name) => {
      trace.note(`the client cancels ${scheduleId.slice(0, 12)} at ${name}`);
      return relay.cancel(scheduleId, token);
    });
    if (answer !== null && isRefused(answer)) market.onDefect(`a cancellation is refused: ${answer.refused}`);
    if (answer !== null) {
      trace.note(`the client gets: ${scheduleId.slice(0, 12)} is cancelled`);
      trace.reached('schedule: cancelled');
      return;
    }
    await scheduler.sleep(random.between(100, 8000));
  }
}

/** null: no answer, or a fault after which the call is repeated. */
async function ask<T>(
  market: OrderMarket,
  random: Random,
  { calls }: Pick<Order, 'id' | 'calls'>,
  call: (schedules: Schedules, name: string) => Promise<T>,
): Promise<T | null> {
  const { scheduler } = market;
  await scheduler.sleep(random.between(0, 40));
  const open = market.relays().flatMap(({ host, schedules }) => {
    const its = schedules();
    return its === null ? [] : [{ host, its }];
  });
  if (open.length === 0) return null;
  const { host, its } = random.pick(open);
  const made = { relay: host.name, isResolved: false };
  calls.push(made);
  const answered = call(its, host.name).then(
    (answer) => {
      made.isResolved = true;
      return answer;
    },
    (error: unknown) => {
      made.isResolved = true;
      if (!(error instanceof Fault)) market.onDefect(`a call of schedules fails: ${error}`);
      return null;
    },
  );
  const gone = new Promise<null>((resolve) => {
    host.whenKilled(() => resolve(null));
    const ms = random.chance(0.1) ? random.between(500, 30_000) : 130_000;
    void scheduler.sleep(ms).then(() => resolve(null));
  });
  return Promise.race([answered, gone]);
}
