// Buys runs of a schedule: one payment a run, which cannot be charged before that run is due. What the relay asks for is
// compared with the buyer's own schedule before anything is signed, and what it answers with what was signed.
import { createHmac } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { isObject } from '#src/lib/is-object.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Ledger, LedgerRecord } from './ledger.ts';
import { type BuyerLimits, type Finding, judgeOffer, microUsdOf, readOffer } from './offer.ts';
import { type Payer, type Payment, samePayment, windowPayment } from './payment.ts';
import { demandAllowedTarget } from './policy-check.ts';
import { type Answer, describe, type PresentDeps, type Problem, present } from './present.ts';
import { refusalOf } from './purchase.ts';
import { compare, PurchaseError } from './purchase-error.ts';
import { type BoughtSchedule, CancelToken, type ScheduleFile } from './schedule-file.ts';
import {
  chargeWindow,
  dueSecondsOf,
  dueTimes,
  misplaced,
  offeredRun,
  type ScheduleBody,
  ScheduledRun,
} from './schedule-offer.ts';

export type ScheduleOrder = {
  /** Origin of the relay. */
  readonly relay: string;
  readonly body: ScheduleBody;
  readonly runs: number;
  /** Millionths of a US dollar, at most, for all runs together. Every payment that was signed counts. */
  readonly maxMicroUsd: bigint;
  readonly limits: BuyerLimits;
  /** null: compare the offer of run 1 only, do not pay. */
  readonly paying: Paying | null;
};

type Paying = {
  readonly payer: Payer & { readonly address: string };
  /** Names the order in the ledger. */
  readonly key: string;
  readonly ledger: Ledger;
  readonly file: ScheduleFile;
};

type ScheduleDeps = PresentDeps & { readonly calendar: Calendar };

export type ScheduleResult = {
  readonly outcome: 'funded' | 'not_paid' | 'policy_refused' | 'relay_refused' | 'unverified' | 'unfinished';
  /** Why not all runs are paid for. */
  readonly error: PurchaseError | null;
  /** Of a relay that refused. */
  readonly problem: Problem | null;
  /** Of the offer that was compared last. */
  readonly policy: readonly Finding[];
  readonly bought: BoughtSchedule | null;
  /** Every payment that was signed for the order: millionths of a US dollar. */
  readonly signedMicroUsd: bigint;
};

/** The order's name, without a trace of its content for those who do not have the wallet's key. */
export const orderKey = (secret: Uint8Array, { text }: ScheduleBody): string =>
  `schedule-${createHmac('sha256', secret).update('relay buyer schedule').update(text).digest('hex').slice(0, 16)}`;

/** Throws `OperatorError` for what the buyer has to mend; what the relay answers is part of the result. */
export async function buySchedule(deps: ScheduleDeps, order: ScheduleOrder): Promise<ScheduleResult> {
  const { relay, paying } = order;
  const bought = paying?.file.find() ?? null;
  if (paying === null || bought === null) return new Purchase(deps, order, null).run();
  const { payer, key, file } = paying;
  if (bought.relay === relay && bought.payer === payer.address && bought.key === key)
    return new Purchase(deps, order, bought).run();
  throw new OperatorError(
    `${file.path} is of another purchase (relay, wallet, --key or the content of the file differs), and nothing is paid: use a copy of the file with another name`,
  );
}

/** What ends a purchase before all runs are paid for. */
class Ended extends Error {
  readonly outcome: ScheduleResult['outcome'];
  readonly error: PurchaseError;
  readonly problem: Problem | null;
  constructor(outcome: Ended['outcome'], error: PurchaseError, problem: Problem | null = null) {
    super(outcome, { cause: error });
    this.outcome = outcome;
    this.error = error;
    this.problem = problem;
  }
}

const WELL = { error: null, problem: null } as const;

/** Throws what is no end of a purchase. */
function endOf(error: unknown): Pick<ScheduleResult, 'outcome' | 'error' | 'problem'> {
  if (error instanceof PurchaseError) return { outcome: 'policy_refused', error, problem: null };
  if (!(error instanceof Ended)) throw error;
  const { outcome, problem, error: why } = error;
  return { outcome, error: why, problem };
}

class Purchase {
  readonly #deps: ScheduleDeps;
  readonly #order: ScheduleOrder;
  #bought: BoughtSchedule | null;
  #policy: readonly Finding[] = [];
  #signed = 0n;
  #isPlanned = false;

  constructor(deps: ScheduleDeps, order: ScheduleOrder, bought: BoughtSchedule | null) {
    this.#deps = deps;
    this.#order = order;
    this.#bought = bought;
  }

  async run(): Promise<ScheduleResult> {
    try {
      const { paying } = this.#order;
      if (paying === null) {
        await this.#askRun();
        return this.#result({ outcome: 'not_paid', ...WELL });
      }
      const known = this.#runs().at(-1)?.payment ?? 0;
      for (let payment = 1; payment <= known || this.#missing() > 0; payment++)
        await this.#buy(paying, payment);
      return this.#result({ outcome: 'funded', ...WELL });
    } catch (error) {
      return this.#result(endOf(error));
    }
  }

  #result(end: Pick<ScheduleResult, 'outcome' | 'error' | 'problem'>): ScheduleResult {
    return { ...end, policy: this.#policy, bought: this.#bought, signedMicroUsd: this.#signed };
  }

  #missing = (): number => this.#order.runs - this.#runs().length;
  #runs = () => this.#bought?.runs ?? [];
  #last = (): ScheduledRun | null => this.#runs().at(-1) ?? null;

  #url(): string {
    const { relay } = this.#order;
    const id = this.#bought?.scheduleId;
    return id === undefined ? `${relay}/api/schedules/webhook` : `${relay}/api/schedules/${id}/runs`;
  }

  #text = (): string => (this.#bought === null ? this.#order.body.text : '{}');

  /** One payment: the recorded one if there is one, else a new one. */
  async #buy(paying: Paying, payment: number): Promise<void> {
    const { relay, body } = this.#order;
    const { payer, key, ledger } = paying;
    const name = { relay, payer: payer.address, idempotencyKey: `${key}#${payment}`, request: body.text };
    let record = await ledger.find(name);
    let signed: Payment | null = null;
    const isBought = this.#runs().some((run) => run.payment === payment);
    if (record === null) {
      if (isBought && this.#missing() <= 0) return;
      if (isBought)
        throw new OperatorError(
          `the ledger has no record of payment ${payment} of this schedule, which was made: restore it`,
        );
      const { required, run } = await this.#askRun();
      const price = microUsdOf(required.accepts[0]) ?? 0n;
      const window = chargeWindow(run.dueAt, body.catchUpSeconds);
      const claimed = await ledger.claim(name, price, () => windowPayment(payer, required, window));
      if (claimed.kind === 'recorded') record = claimed.record;
      else [signed, this.#signed] = [claimed.payment, this.#signed + price];
    }
    if (record !== null) this.#signed += microUsd(record.usd) ?? 0n;
    if (isBought) return;
    const resource = { url: this.#url() };
    const again = (one: LedgerRecord) =>
      samePayment(payer, { x402Version: 2, resource, accepts: [one.terms] }, one);
    const made = signed ?? (record && (await again(record)));
    if (made !== null) await this.#present(paying, payment, made, record !== null);
  }

  /** The relay's offer of the next run, within all limits. Nothing is signed before. */
  async #askRun() {
    const { body, limits, paying } = this.#order;
    const deps = this.#deps;
    const missing = this.#missing();
    if (!this.#isPlanned) {
      if (paying !== null) await demandAllowedTarget(deps, this.#order.relay, body.webhook);
      await demandRuns(deps, this.#order, this.#bought, missing);
    }
    this.#isPlanned = true;
    const [url, text] = [this.#url(), this.#text()];
    // Without a body first: a relay in demo mode, which asks for no payment, must not define a schedule.
    if (this.#bought === null) await ask(deps, url, '{}');
    const answer = await ask(deps, url, text);
    const { required, findings } = judge(this.#order, url, answer, this.#signed, missing);
    this.#policy = findings;
    // Nothing is signed in a dry run: it needs no payee.
    const needless = paying === null && limits.payTo === null ? 'pay_to' : null;
    const bad = findings.find(({ ok, name }) => !ok && name !== needless);
    if (bad !== undefined || required === null) throw refusalOf(bad);
    const { maxTimeoutSeconds } = required.accepts[0];
    return { required, run: offeredRun(answer, body, this.#last(), maxTimeoutSeconds, whenOf(deps)) };
  }

  async #present(paying: Paying, payment: number, made: Payment, isRecorded: boolean): Promise<void> {
    const isResult = ({ status, body }: Answer) => status === 201 && isPurchase(parsedJson(body));
    const presented = await present(this.#deps, this.#url(), this.#text(), made.header, isResult);
    if (presented.kind === 'executed') {
      const { answer } = presented;
      this.#bought = confirmed(this.#deps, this.#order, paying, this.#bought, payment, made, answer);
      return paying.file.save(this.#bought);
    }
    const actual = presented.kind === 'refused' ? presented.actual : presented.last;
    const error = new PurchaseError({ member: 'answer', expected: 'a run that is paid for, 201', actual });
    if (presented.kind === 'unfinished') throw new Ended('unfinished', error);
    // The run that it was signed for has passed: another payment is made, for another run.
    if (isRecorded && dueSecondsOf(made.authorization) < this.#deps.clock.now() / 1000) return;
    throw new Ended('relay_refused', error, presented.problem);
  }
}

/** With the run that the answer confirms. Throws `Ended` if the payment was taken for something else. */
function confirmed(
  { calendar }: ScheduleDeps,
  { relay, body: ordered }: ScheduleOrder,
  { payer, key }: Paying,
  before: BoughtSchedule | null,
  payment: number,
  { authorization }: Payment,
  { body }: Answer,
): BoughtSchedule {
  const answer = parsedJson(body);
  if (!isPurchase(answer)) throw new Error('the answer was checked before');
  const { scheduleId, run } = answer;
  const runs = before?.runs ?? [];
  const [differs] = [
    ...compare('answer.scheduleId', before?.scheduleId ?? scheduleId, scheduleId),
    ...misplaced(run, runs.at(-1) ?? null, ordered, authorization, calendar),
  ];
  if (differs !== undefined) throw new Ended('unverified', new PurchaseError(differs));
  return {
    v: 1,
    ...{ relay, payer: payer.address, key, scheduleId },
    cancelToken: before?.cancelToken ?? answer.cancelToken,
    runs: [...runs, { payment, n: run.n, dueAt: run.dueAt }],
  };
}

const whenOf = ({ clock, calendar }: ScheduleDeps) => ({ nowMs: clock.now(), calendar });

/** Throws `OperatorError` if the schedule has too few runs to come, or the relay does not plan so far ahead. */
async function demandRuns(
  deps: ScheduleDeps,
  { relay, body }: ScheduleOrder,
  bought: BoughtSchedule | null,
  count: number,
): Promise<void> {
  const last = bought?.runs.at(-1);
  const lastDueMs = last === undefined ? null : Date.parse(last.dueAt);
  const times = dueTimes(body.schedule, lastDueMs, count, whenOf(deps));
  const refuse = (why: string) =>
    new OperatorError(`${why}, and --runs needs ${count}: nothing more is paid`);
  if (times.length < count) throw refuse(`the schedule has only ${times.length} runs to come`);
  if (bought !== null) return;
  const answer = await deps.send(new Request(`${relay}/api/schedules/capabilities`)).catch((cause) => {
    throw new OperatorError(`${relay} cannot be reached`, { cause });
  });
  const known = parsedJson(await answer.text());
  const days = isObject(known) && typeof known.horizonDays === 'number' ? known.horizonDays : null;
  const endMs = deps.clock.now() + (days ?? 0) * 86_400_000;
  const within = days === null ? count : times.filter((due) => due <= endMs).length;
  if (within < count)
    throw refuse(`the relay sells runs of the next ${days} days, of which the schedule has ${within}`);
}

/** What is left of the limit is shared by the missing runs: all of them are paid for, or none at this price. */
function judge(
  { body, limits, maxMicroUsd }: ScheduleOrder,
  url: string,
  { headers }: Answer,
  signed: bigint,
  missing: number,
) {
  const offer = readOffer(headers);
  if (offer === null) throw notOffered('none that are readable');
  const share = (maxMicroUsd > signed ? maxMicroUsd - signed : 0n) / BigInt(missing);
  const maxPriceMicroUsd = share < limits.maxPriceMicroUsd ? share : limits.maxPriceMicroUsd;
  const asked = { resourceUrl: url, targetHost: body.targetHost };
  return judgeOffer(offer, { ...limits, maxPriceMicroUsd }, asked);
}

/** The 402. Asked again only while the relay is busy or unavailable: whatever else it answers, no run is ordered twice. */
async function ask(deps: ScheduleDeps, url: string, text: string): Promise<Answer> {
  const isFinal = ({ status }: Answer) => status < 500 && status !== 408 && status !== 429;
  const asked = await present(deps, url, text, null, isFinal);
  if (asked.kind !== 'executed') throw notOffered(asked.kind === 'refused' ? asked.actual : asked.last);
  if (asked.answer.status !== 402) throw notOffered(describe(asked.answer));
  return asked.answer;
}

const isPurchase = shapeCheck(
  Type.Object({
    scheduleId: Type.String({ pattern: ID_PATTERN.schedule }),
    cancelToken: Type.Union([CancelToken, Type.Null()]),
    run: ScheduledRun,
  }),
);

const notOffered = (actual: string): PurchaseError =>
  new PurchaseError({ member: 'offer', expected: '402 with payment requirements of x402 version 2', actual });

const isShown = shapeCheck(
  Type.Object({
    status: Type.String(),
    runs: Type.Array(
      Type.Object({
        ...ScheduledRun.properties,
        state: Type.String(),
        reason: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  }),
);

/** What the relay says of a schedule; null: it says nothing readable. */
export async function readSchedule({ send }: Pick<ScheduleDeps, 'send'>, url: string) {
  try {
    const shown = parsedJson(await (await send(new Request(url))).text());
    return isShown(shown) ? shown : null;
  } catch {
    return null;
  }
}
