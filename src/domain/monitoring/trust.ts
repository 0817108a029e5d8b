// The trust score: a weighted mean of measured facts. A fact without data is left out, and its weight is shared among the
// others. The read models supply the measurements; the attention rule is in alert-rules.ts.

import type { Mode } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';
import type { WitnessesStatus } from './witnesses.ts';

/** A job is recent if it finished within this time, ms. */
export const TRUST_WINDOW_MS = LIMITS.monitoringWindowMs.default;

/** A checkpoint is overdue if a receipt or key event waits longer for it, ms; usual are seconds. */
export const CHECKPOINT_WAIT_MS = 60_000;

export type CheckpointStatus = {
  /** How long the oldest leaf that no checkpoint covers has waited; 0 where all are covered. */
  readonly ageMs: number;
  /** Why no checkpoint is signed; null: the newest is signed by the relay's key, and the current tree extends its tree. */
  readonly problem: CheckpointProblem | null;
};

export type TrustFacts = {
  /** Payment is enforced: no execution without a settled payment. */
  readonly paymentEnforced: boolean;
  readonly storage: {
    /** For example `sqlite+pglite`. */
    readonly driver: string;
    /** An acknowledged event survives a crash. */
    readonly durable: boolean;
  };
  /** Jobs finished within `TRUST_WINDOW_MS`. */
  readonly recentSucceeded: number;
  readonly recentFailed: number;
  /** All receipts signed so far, and how many of them verified. */
  readonly receipts: number;
  readonly receiptsVerified: number;
  /** Of the transparency log; null while there is no log. */
  readonly checkpoint: CheckpointStatus | null;
  /** Absent: the log has none. */
  readonly witnesses?: WitnessesStatus | null;
};

/** The inputs of the score. */
export function trustFacts(
  runs: { readonly mode: Mode; readonly storage: TrustFacts['storage'] },
  jobs: Pick<TrustFacts, 'recentSucceeded' | 'recentFailed'>,
  signed: { readonly receipts: number; readonly verified: number },
  checkpoint: CheckpointStatus | null,
  witnesses: WitnessesStatus | null = null,
): TrustFacts {
  return {
    paymentEnforced: runs.mode === 'x402',
    storage: runs.storage,
    recentSucceeded: jobs.recentSucceeded,
    recentFailed: jobs.recentFailed,
    receipts: signed.receipts,
    receiptsVerified: signed.verified,
    checkpoint,
    witnesses,
  };
}

export type TrustComponentName =
  | 'payment_enforced'
  | 'durable_storage'
  | 'recent_success_rate'
  | 'receipts_verified'
  | 'log_checkpoint';

export type TrustComponent = {
  readonly name: TrustComponentName;
  /** The measured fact: true or false, or a share from 0 to 1. */
  readonly value: boolean | number;
  /** Share of the score, from 0 to 1; all weights add up to 1. */
  readonly weight: number;
  /** 0 to 100. */
  readonly score: number;
};

export type Trust = { readonly score: number; readonly components: readonly TrustComponent[] };

const WEIGHTS: Record<TrustComponentName, number> = {
  payment_enforced: 15,
  durable_storage: 25,
  recent_success_rate: 25,
  receipts_verified: 25,
  log_checkpoint: 10,
};

/** 0 to 100, whole. The same facts give the same score. */
export function trustScore(facts: TrustFacts): Trust {
  const measured = measure(facts);
  const whole = measured.reduce((sum, { name }) => sum + WEIGHTS[name], 0);
  const components = measured.map(({ name, value }) => ({
    name,
    value,
    weight: WEIGHTS[name] / whole,
    score: Math.round(Number(value) * 100),
  }));
  const score = measured.reduce(
    (sum, { name, value }) => sum + (WEIGHTS[name] * Number(value) * 100) / whole,
    0,
  );
  return { score: Math.round(score), components };
}

type Measure = Pick<TrustComponent, 'name' | 'value'>;

function measure(facts: TrustFacts): readonly Measure[] {
  const { paymentEnforced, storage, recentSucceeded, recentFailed, receipts, receiptsVerified, checkpoint } =
    facts;
  const finished = recentSucceeded + recentFailed;
  const measured: Measure[] = [
    { name: 'payment_enforced', value: paymentEnforced },
    { name: 'durable_storage', value: storage.durable },
  ];
  if (finished > 0) measured.push({ name: 'recent_success_rate', value: recentSucceeded / finished });
  if (receipts > 0) measured.push({ name: 'receipts_verified', value: receiptsVerified / receipts });
  if (checkpoint !== null) measured.push({ name: 'log_checkpoint', value: isGood(checkpoint) });
  return measured;
}

const isGood = ({ problem, ageMs }: CheckpointStatus) => problem === null && ageMs <= CHECKPOINT_WAIT_MS;

/** The price of a call if payment is enforced. `price`: for example `$0.003`. */
export type Offer = { readonly scheme: string; readonly network: string; readonly price: string };

/** The same facts as sentences, one per component, also for those without data. */
export function trustSignals(facts: TrustFacts, offer: Offer): readonly string[] {
  const { storage, checkpoint, witnesses = null } = facts;
  return [
    facts.paymentEnforced
      ? `Payment is enforced: ${offer.price} a call by x402 (${offer.scheme}, ${offer.network}).`
      : 'Payment is not enforced: the service runs in demo mode.',
    storage.durable
      ? `Every event is durable before it is acknowledged (${storage.driver}).`
      : `Events may be lost in a crash (${storage.driver}).`,
    executionsSignal(facts),
    receiptsSignal(facts),
    checkpointSignal(checkpoint, witnesses),
  ];
}

function checkpointSignal(checkpoint: TrustFacts['checkpoint'], witnesses: WitnessesStatus | null): string {
  if (checkpoint === null) return 'There is no transparency log yet.';
  const status = isGood(checkpoint)
    ? 'is fresh and consistent with the log'
    : checkpoint.problem === null
      ? 'is overdue'
      : 'does not fit the log';
  return `The newest checkpoint of the transparency log ${status}. ${witnessText(witnesses)}`;
}

function witnessText(witnesses: WitnessesStatus | null): string {
  if (witnesses === null) return 'It is unwitnessed: no witness cosigns it.';
  const { configured, quorum, lastCosignedAt, lagSeconds } = witnesses;
  if (lastCosignedAt === null) return `No quorum of its ${configured} witnesses has cosigned one yet.`;
  const lag = lagSeconds === 0 ? '' : `; the newest has waited ${lagSeconds} s for one`;
  return `A quorum (${quorum}) of its ${configured} witnesses has last cosigned one at ${lastCosignedAt}${lag}.`;
}

function executionsSignal({ recentSucceeded, recentFailed }: TrustFacts): string {
  const finished = recentSucceeded + recentFailed;
  const within = `within the last ${TRUST_WINDOW_MS / 3_600_000} hours`;
  if (finished === 0) return `No job has finished ${within}.`;
  const share = Math.floor((recentSucceeded / finished) * 1000) / 10;
  return `${recentSucceeded} of ${finished} jobs finished ${within} succeeded (${share} %).`;
}

function receiptsSignal({ receipts, receiptsVerified }: TrustFacts): string {
  if (receipts === 0) return 'No receipt has been signed yet.';
  if (receiptsVerified === receipts) return `All receipts signed so far verify (${receipts}).`;
  return `${receipts - receiptsVerified} of ${receipts} receipts signed so far do not verify.`;
}
