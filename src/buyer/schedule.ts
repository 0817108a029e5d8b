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
import type { LedgerOrder, PurchaseLedger } from './ledger.ts';
import type { BuyerLimits } from './offer.ts';
import { type BuyerPayment, type BuyerWallet, windowPayment } from './payment.ts';
import { type Answer, type PresentDeps, reached } from './present.ts';
import { compare, PurchaseError } from './purchase-error.ts';
import { type Item, type PurchaseProgress, type PurchaseResult, purchaseItems } from './purchase-loop.ts';
import { type BoughtSchedule, CancelToken, type ScheduleFile } from './schedule-file.ts';
import {
  chargeWindow,
  dueSecondsOf,
  dueTimes,
  misplaced,
  OfferedRun,
  offeredRun,
  type ScheduleBody,
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
  readonly payer: BuyerWallet & { readonly address: string };
  /** Names the order in the ledger. */
  readonly key: string;
  readonly ledger: PurchaseLedger;
  readonly file: ScheduleFile;
};

type ScheduleDeps = PresentDeps & { readonly calendar: Calendar };

export type ScheduleResult = PurchaseResult<'funded'> & { readonly bought: BoughtSchedule | null };

/** The order's name, without a trace of its content for those who do not have the wallet's key. */
export const orderKey = (secret: Uint8Array, { text }: ScheduleBody): string =>
  `schedule-${createHmac('sha256', secret).update('relay buyer schedule').update(text).digest('hex').slice(0, 16)}`;

/** Throws `OperatorError` for what the buyer has to mend; what the relay answers is part of the result. */
export async function buySchedule(deps: ScheduleDeps, order: ScheduleOrder): Promise<ScheduleResult> {
  const { relay, body, runs, paying } = order;
  let bought = paying === null ? null : boughtBefore(relay, paying);
  const missing = () => runs - (bought?.runs.length ?? 0);

  function itemOf(payment: number, signed: bigint): Item {
    const url = `${relay}/api/schedules/${bought === null ? 'webhook' : `${bought.scheduleId}/runs`}`;
    const text = bought === null ? body.text : '{}';
    return {
      url,
      text,
      // Without a body first: a relay in demo mode, which asks for no payment, must not define a schedule.
      asks: bought === null ? ['{}', text] : [text],
      name: paying && nameOf(order, paying, payment),
      targetHost: body.targetHost,
      limits: limitsOfRun(order, signed, missing()),
      accept(required, answer) {
        const { maxTimeoutSeconds } = required.accepts[0];
        const run = offeredRun(answer, body, bought?.runs.at(-1) ?? null, maxTimeoutSeconds, whenOf(deps));
        const window = chargeWindow(run.dueAt, body.catchUpSeconds);
        return (payer) => windowPayment(payer, required, window);
      },
      isResult: (answer) => answer.status === 201 && isPurchase(parsedJson(answer.body)),
      expected: 'a run that is paid for, 201',
      async confirm(answer, made) {
        if (paying === null || made.payment === null) throw new Error('a run is paid for');
        bought = confirmed(deps, order, paying, bought, payment, made.payment, answer);
        paying.file.save(bought);
      },
      // The run that it was signed for has passed: another payment is made, for another run.
      isOver: ({ authorization }) => dueSecondsOf(authorization) < deps.clock.now() / 1000,
    };
  }

  async function* items(made: PurchaseProgress) {
    const known = bought?.runs.at(-1)?.payment ?? 0;
    for (let payment = 1; payment <= known || missing() > 0; payment++) {
      if (paying === null || !bought?.runs.some((run) => run.payment === payment))
        yield itemOf(payment, made.signedMicroUsd);
      else made.signedMicroUsd += await signedBefore(order, paying, payment, missing() > 0);
    }
  }

  const result = await purchaseItems(
    { ...deps, ledger: paying?.ledger ?? null },
    {
      relay,
      request: body.webhook,
      payer: paying?.payer ?? null,
      plan: () => demandRuns(deps, order, bought, missing()),
      items,
    },
    () => 'funded' as const,
  );
  return { ...result, bought };
}

/** What the file records. Throws `OperatorError` if it is of another purchase. */
function boughtBefore(relay: string, { payer, key, file }: Paying): BoughtSchedule | null {
  const bought = file.find();
  if (bought === null) return null;
  if (bought.relay === relay && bought.payer === payer.address && bought.key === key) return bought;
  throw new OperatorError(
    `${file.path} is of another purchase (relay, wallet, --key or the content of the file differs), and nothing is paid: use a copy of the file with another name`,
  );
}

const nameOf = ({ relay, body }: ScheduleOrder, { payer, key }: Paying, payment: number): LedgerOrder => ({
  relay,
  payer: payer.address,
  idempotencyKey: `${key}#${payment}`,
  request: body.text,
});

/** The price of a run that was bought. Throws `OperatorError` if its record is missing and more is to be bought. */
async function signedBefore(
  order: ScheduleOrder,
  paying: Paying,
  payment: number,
  isNeeded: boolean,
): Promise<bigint> {
  const record = await paying.ledger.find(nameOf(order, paying, payment));
  if (record !== null || !isNeeded) return microUsd(record?.usd ?? '0') ?? 0n;
  throw new OperatorError(
    `the ledger has no record of payment ${payment} of this schedule, which was made: restore it`,
  );
}

/** What is left of the limit is shared by the missing runs: all of them are paid for, or none at this price. */
function limitsOfRun({ limits, maxMicroUsd }: ScheduleOrder, signed: bigint, missing: number): BuyerLimits {
  const share = (maxMicroUsd > signed ? maxMicroUsd - signed : 0n) / BigInt(Math.max(missing, 1));
  const maxPriceMicroUsd = share < limits.maxPriceMicroUsd ? share : limits.maxPriceMicroUsd;
  return { ...limits, maxPriceMicroUsd };
}

/** With the run that the answer confirms. Throws `PurchaseError` if the payment was taken for something else. */
function confirmed(
  { calendar }: ScheduleDeps,
  { relay, body: ordered }: ScheduleOrder,
  { payer, key }: Paying,
  before: BoughtSchedule | null,
  payment: number,
  { authorization }: BuyerPayment,
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
  if (differs !== undefined) throw new PurchaseError(differs, { outcome: 'unverified' });
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
  const answer = await reached(deps.send, new Request(`${relay}/api/schedules/capabilities`));
  const known = parsedJson(await answer.text());
  const days = isObject(known) && typeof known.horizonDays === 'number' ? known.horizonDays : null;
  const endMs = deps.clock.now() + (days ?? 0) * 86_400_000;
  const within = days === null ? count : times.filter((due) => due <= endMs).length;
  if (within < count)
    throw refuse(`the relay sells runs of the next ${days} days, of which the schedule has ${within}`);
}

const isPurchase = shapeCheck(
  Type.Object({
    scheduleId: Type.String({ pattern: ID_PATTERN.schedule }),
    cancelToken: Type.Union([CancelToken, Type.Null()]),
    run: OfferedRun,
  }),
);

const isShown = shapeCheck(
  Type.Object({
    status: Type.String(),
    runs: Type.Array(
      Type.Object({
        ...OfferedRun.properties,
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
