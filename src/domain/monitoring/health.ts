// What the service states about itself: facts in, the state of each part out. `/health`, the gauges and the alert rules
// read the same report. A part is ok if what callers need of it worked within the last 30 s, or was tried and worked just
// now. No message contains a path, an address or a key.
import { type Damage, damagedPlace, REMEDY } from '#src/domain/damage.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';
import { ATTENTION } from './alert-rules.ts';
import { CHECKPOINT_WAIT_MS } from './trust.ts';

/** Why the event log takes no events. `replaced`: its file is no longer at its place. */
export type LogProblem = 'unavailable' | 'not_writable' | 'replaced' | 'damaged';

/** Events that cannot be read as they were written. */
export type DamagedEvents = { readonly count: number; readonly first: Omit<Damage, 'problem'> };

export type LogHealth = { readonly damaged?: DamagedEvents } & (
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: LogProblem }
);

/** `validFrom`: RFC 3339, from when a key of this process is valid; null: none will be. */
export type SigningKeyHealth =
  | { readonly ok: true }
  | { readonly ok: false; readonly validFrom: string | null };

/**
 * Why paid calls cannot be verified or settled at the facilitator. `login_refused`: it answers 401 or 403. `failing`: its
 * answers are errors or malformed. `unsupported`: it does not support our scheme and network. `internal_error`: a defect
 * of this program.
 */
export type FacilitatorProblem = 'no_answer' | 'login_refused' | 'failing' | 'unsupported' | 'internal_error';

export type FacilitatorHealth =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: FacilitatorProblem };

/**
 * Why the books cannot be compared with the chain. `no_safe_block`: the node has no block that is final. `unchecked`: it has
 * not been found to serve our asset, and no paid call is taken before that.
 */
export type ChainProblem = 'no_answer' | 'other_chain' | 'no_safe_block' | 'unchecked';

export type ChainHealth = { readonly ok: true } | { readonly ok: false; readonly problem: ChainProblem };

/** `units`: by how much the payee's balance has changed more than the transfers in these blocks say. */
type Differs = { readonly units: bigint; readonly fromBlock: number; readonly toBlock: number };

/** `since`: RFC 3339, when a block was last compared with the books. */
export type ComparisonHealth =
  | ChainHealth
  | ({ readonly ok: false; readonly problem: 'books_differ_from_chain' } & Differs)
  | { readonly ok: false; readonly problem: 'not_compared'; readonly since: string };

/**
 * ms without a further block, besides two intervals of the comparison, after which it stands still. Ethereum's `safe` block
 * advances once an epoch (6.4 min), or after two; that of a rollup when a batch is posted. A payment of unknown fate, which
 * the comparison is to end, is an alert after the same time.
 */
export const STANDSTILL_MS = 900_000;

export type ReadModelProblem = 'unavailable' | 'rebuilding';

export type ReadModelHealth =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: ReadModelProblem };

/** `reason`: a code; `message`: for people. */
export type PartHealth =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly message: string };

export type HealthFacts = {
  readonly eventLog: LogHealth;
  readonly signingKey: SigningKeyHealth;
  /** `waitingMs`: how long the oldest leaf has waited for a checkpoint. null: there is no transparency log. */
  readonly checkpoint: { readonly problem: CheckpointProblem | null; readonly waitingMs: number } | null;
  /** `rebuilding`: rows that were lost, or of a history that the log no longer has, are built again. */
  readonly readModels: ReadModelHealth;
  /** `stoppedAt`: the damage of the log that no event behind it is projected over, in words; null: there is none. */
  readonly projection: { readonly lagMs: number; readonly stoppedAt: string | null };
  /** null: none is needed (demo mode). */
  readonly facilitator: FacilitatorHealth | null;
  /** null: none is needed (demo mode). */
  readonly chain: ComparisonHealth | null;
};

export type HealthReport = {
  /** Every part is ok. */
  readonly ok: boolean;
  /** Calls can be executed. */
  readonly executes: boolean;
  readonly checks: Readonly<
    Record<'eventLog' | 'signingKey' | 'transparencyLog' | 'readModels' | 'projections', PartHealth>
  > &
    Readonly<Record<'facilitator' | 'chain', PartHealth | null>>;
};

export function healthReport(facts: HealthFacts): HealthReport {
  const { eventLog, signingKey, checkpoint, readModels, projection, facilitator, chain } = facts;
  const checks = {
    eventLog: logPart(eventLog),
    signingKey: signingKey.ok ? OK : not('no_signing_key', noSigningKey(signingKey.validFrom)),
    transparencyLog: checkpointPart(checkpoint),
    readModels: readModels.ok ? OK : not(readModels.problem, READ_MODELS[readModels.problem]),
    projections: projectionPart(projection),
    facilitator: usedPart(facilitator, FACILITATOR),
    chain: chainPart(chain),
  };
  return {
    ok: Object.values(checks).every((part) => part?.ok !== false),
    executes: eventLog.ok && signingKey.ok && checkpoint?.problem !== 'checkpoint_forgotten',
    checks,
  };
}

const OK: PartHealth = { ok: true };
const not = (reason: string, message: string): PartHealth => ({ ok: false, reason, message });

const MEND = `The operator has to ${REMEDY.whole}.`;
const LOG: Readonly<Record<LogProblem, string>> = {
  unavailable: 'The event log does not answer: no call is executed.',
  not_writable: 'The event log accepts no events: no call is executed.',
  replaced:
    'The file of the event log was removed or replaced while the service runs: no call is executed until the service is started again.',
  damaged: `The file of the event log is damaged: no call is executed. ${MEND}`,
};
const FACILITATOR: Readonly<Record<FacilitatorProblem, string>> = {
  no_answer: 'The facilitator does not answer: paid calls answer 503, nothing is charged.',
  login_refused: 'The facilitator refuses our login: paid calls answer 503, nothing is charged.',
  failing: 'The facilitator gives no usable answer: paid calls answer 503, nothing is charged.',
  unsupported:
    'The facilitator does not support our scheme and network: paid calls answer 503, nothing is charged.',
  internal_error: 'A defect of this service prevents questions to the facilitator: the log has it.',
};
const CHAIN: Readonly<Record<ChainProblem, string>> = {
  no_answer:
    'The node of the chain does not answer: settlements whose answer was lost stay open, the books are not compared. A service that started without it answers paid calls 503.',
  other_chain:
    'The node is of another chain than that of the payments: settlements whose answer was lost stay open. A service that started without a node answers paid calls 503.',
  no_safe_block: 'The node has no block that is final: the books are not compared with the chain.',
  unchecked:
    'The node has given no usable answer about the asset since the start: paid calls answer 503. The log states why.',
};
const READ_MODELS: Readonly<Record<ReadModelProblem, string>> = {
  unavailable: 'The read models are unavailable: reads answer 503, calls are executed.',
  rebuilding:
    'The read models are built again from the event log: reads answer 503 until then, calls are executed.',
};
const LAGGING = `The read models lag the event log by over ${ATTENTION.lagMs / 1000} s: new jobs and receipts are not shown.`;

function projectionPart({ lagMs, stoppedAt }: HealthFacts['projection']): PartHealth {
  if (stoppedAt !== null)
    return not(
      'stopped',
      `The read models stop before ${stoppedAt}: what was recorded later is not shown. ${MEND}`,
    );
  return lagMs <= ATTENTION.lagMs ? OK : not('lagging', LAGGING);
}

function logPart(log: LogHealth): PartHealth {
  const events = log.damaged === undefined ? null : damagedText(log.damaged);
  if (!log.ok) return not(log.problem, events === null ? LOG[log.problem] : `${LOG[log.problem]} ${events}.`);
  return events === null
    ? OK
    : not('damaged_events', `${events}: what needs them fails, other calls are executed. ${MEND}`);
}

function damagedText({ count, first }: DamagedEvents): string {
  const place = damagedPlace(first);
  return count === 1
    ? `1 event cannot be read as it was written: ${place}`
    : `${count} events cannot be read as they were written, the first at ${place}`;
}

function usedPart<P extends string>(
  part: { readonly ok: true } | { readonly ok: false; readonly problem: P } | null,
  messages: Readonly<Record<P, string>>,
): PartHealth | null {
  return part === null || part.ok ? part : not(part.problem, messages[part.problem]);
}

function chainPart(chain: HealthFacts['chain']): PartHealth | null {
  if (chain === null || chain.ok) return chain;
  if (chain.problem === 'books_differ_from_chain') {
    const { units, fromBlock, toBlock } = chain;
    return not(
      chain.problem,
      `The payee's balance and the transfers that the node shows differ by ${units} units in the blocks ${fromBlock} to ${toBlock}: ${UNCOMPARED}`,
    );
  }
  if (chain.problem !== 'not_compared') return not(chain.problem, CHAIN[chain.problem]);
  return not(
    'not_compared',
    `No block of the chain was compared with the books since ${chain.since}: ${UNCOMPARED}`,
  );
}

const UNCOMPARED =
  'payments of unknown fate stay open, and charges are not confirmed; calls are executed. The log states why.';

/** For callers, too. */
export function noSigningKey(validFrom: string | null): string {
  const next = validFrom === null ? '' : `; a key is valid from ${validFrom}`;
  return `This relay has no valid signing key${next}: no call is executed.`;
}

const CHECKPOINTS: Readonly<Record<CheckpointProblem, string>> = {
  checkpoint_unreadable: 'The last checkpoint of the event log cannot be read: no checkpoint is signed.',
  checkpoint_forgotten:
    'The event log lacks events that this relay acknowledged: it was restored from an older backup, or lost its end. No call is executed until the operator decides.',
  checkpoint_not_signed:
    'The last checkpoint of the event log is not signed by a checkpoint key of this relay: no checkpoint is signed.',
  history_cut: 'Receipts or key events that the last checkpoint covers are missing: no checkpoint is signed.',
  history_rewritten:
    'Receipts or key events differ from those that the last checkpoint covers: no checkpoint is signed.',
};

function checkpointPart(checkpoint: HealthFacts['checkpoint']): PartHealth {
  if (checkpoint === null) return OK;
  const { problem, waitingMs } = checkpoint;
  if (problem !== null) return not(problem, CHECKPOINTS[problem]);
  if (waitingMs <= CHECKPOINT_WAIT_MS) return OK;
  return not('checkpoint_overdue', 'Receipts have waited over a minute for a checkpoint.');
}
