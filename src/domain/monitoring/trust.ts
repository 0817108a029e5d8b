// The trust score: measured facts only, each weighed; what has no data yet is left out and the other weights share its
// place. It leaves the measuring to the read models and the attention rule to attention.ts.
import type { Mode } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';

/** Recent is: finished within this, ms. */
export const TRUST_WINDOW_MS = LIMITS.monitoringWindowMs.default;

/** A checkpoint is overdue where a receipt or key event waits longer for it, ms: seconds are usual. */
export const CHECKPOINT_WAIT_MS = 60_000;

export type CheckpointStanding = {
  /** How long the oldest leaf that no checkpoint covers has waited; 0 where all are covered. */
  readonly ageMs: number;
  /** The newest checkpoint is signed by the relay's key, and a part of the tree as it stands. */
  readonly consistent: boolean;
};

export type TrustFacts = {
  /** Payment is enforced: no execution without a settled payment. */
  readonly paymentEnforced: boolean;
  readonly storage: {
    /** As in `sqlite+pglite`. */
    readonly driver: string;
    /** An acknowledged event survives a crash. */
    readonly durable: boolean;
  };
  /** Jobs finished within the window. */
  readonly recentSucceeded: number;
  readonly recentFailed: number;
  readonly windowMs: number;
  /** Receipts ever signed, and those of them that verified. */
  readonly receipts: number;
  readonly receiptsVerified: number;
  /** Of the transparency log; null while there is none. */
  readonly checkpoint: (CheckpointStanding & { readonly maxAgeMs: number }) | null;
};

/**
 * What the score is made of: how the service runs, jobs finished within `TRUST_WINDOW_MS`, receipts ever signed, and how
 * the transparency log stands.
 */
export function trustFacts(
  runs: { readonly mode: Mode; readonly storage: TrustFacts['storage'] },
  jobs: Pick<TrustFacts, 'recentSucceeded' | 'recentFailed'>,
  signed: { readonly receipts: number; readonly verified: number },
  checkpoint: CheckpointStanding | null,
): TrustFacts {
  return {
    paymentEnforced: runs.mode === 'x402',
    storage: runs.storage,
    recentSucceeded: jobs.recentSucceeded,
    recentFailed: jobs.recentFailed,
    windowMs: TRUST_WINDOW_MS,
    receipts: signed.receipts,
    receiptsVerified: signed.verified,
    checkpoint: checkpoint && { ...checkpoint, maxAgeMs: CHECKPOINT_WAIT_MS },
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

const isGood = (checkpoint: NonNullable<TrustFacts['checkpoint']>) =>
  checkpoint.consistent && checkpoint.ageMs <= checkpoint.maxAgeMs;

/** What a call costs where payment is enforced. `price`: as in `$0.003`. */
export type Offer = { readonly scheme: string; readonly network: string; readonly price: string };

/** The same facts as sentences, one a component, those without data too. */
export function trustSignals(facts: TrustFacts, offer: Offer): readonly string[] {
  const { storage, checkpoint } = facts;
  return [
    facts.paymentEnforced
      ? `Payment is enforced: ${offer.price} a call by x402 (${offer.scheme}, ${offer.network}).`
      : 'Payment is not enforced: the service runs in demo mode.',
    storage.durable
      ? `Every event is durable before it is acknowledged (${storage.driver}).`
      : `Events may be lost in a crash (${storage.driver}).`,
    executionsSignal(facts),
    receiptsSignal(facts),
    checkpointSignal(checkpoint),
  ];
}

function checkpointSignal(checkpoint: TrustFacts['checkpoint']): string {
  if (checkpoint === null) return 'There is no transparency log yet.';
  const standing = isGood(checkpoint)
    ? 'is fresh and consistent with the log'
    : checkpoint.consistent
      ? 'is overdue'
      : 'does not fit the log';
  return `The newest checkpoint of the transparency log ${standing}. It is unwitnessed: no witness cosigns it.`;
}

function executionsSignal({ recentSucceeded, recentFailed, windowMs }: TrustFacts): string {
  const finished = recentSucceeded + recentFailed;
  const within = `within the last ${spanOf(windowMs)}`;
  if (finished === 0) return `No job has finished ${within}.`;
  const share = Math.floor((recentSucceeded / finished) * 1000) / 10;
  return `${recentSucceeded} of ${finished} jobs finished ${within} succeeded (${share} %).`;
}

function receiptsSignal({ receipts, receiptsVerified }: TrustFacts): string {
  if (receipts === 0) return 'No receipt has been signed yet.';
  if (receiptsVerified === receipts) return `All receipts signed so far verify (${receipts}).`;
  return `${receipts - receiptsVerified} of ${receipts} receipts signed so far do not verify.`;
}

function spanOf(ms: number): string {
  const hours = ms / 3_600_000;
  return Number.isInteger(hours)
    ? `${hours} ${hours === 1 ? 'hour' : 'hours'}`
    : `${Math.round(ms / 60_000)} minutes`;
}
