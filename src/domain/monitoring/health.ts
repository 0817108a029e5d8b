// What the service states about itself: facts in, what is wrong with each part out, as `conditions.ts` declares it. A part is
// ok if what callers need of it worked within the last 30 s, or was tried and worked just now. No message contains a path, an address or a key.
import { type Damage, damagedPlace } from '#src/domain/damage.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';
import { ATTENTION } from './alert-rules.ts';
import { type CodeOf, type ConditionFacts, type Part, sentenceOf } from './conditions.ts';
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

export type ReadModelHealth =
  | { readonly ok: true }
  /** `refusal`: of the server, in its words. */
  | { readonly ok: false; readonly problem: 'unavailable' | 'rebuilding'; readonly refusal?: string };

/**
 * What no event behind it is projected over. `stopped`: damage of the log; `newer_release`: an event that a newer release
 * has written. `place`: in words.
 */
export type ProjectionBarrier = { readonly problem: 'stopped' | 'newer_release'; readonly place: string };

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
  readonly projection: { readonly lagMs: number; readonly barrier: ProjectionBarrier | null };
  /** null: none is needed (demo mode). */
  readonly facilitator: FacilitatorHealth | null;
  /** null: none is needed (demo mode). */
  readonly chain: ComparisonHealth | null;
  /** `wrong` null: nothing is. null: no schedules are sold. */
  readonly schedules: { readonly wrong: Wrong<'schedules'> | null } | null;
};

export type Wrong<P extends Part> = { readonly code: CodeOf<P>; readonly facts?: ConditionFacts };

/** The parts that `/health` states, in its order. */
export const HEALTH_PARTS = [
  'eventLog',
  'signingKey',
  'transparencyLog',
  'readModels',
  'projections',
  'facilitator',
  'chain',
  'schedules',
] as const satisfies readonly Part[];
export type HealthPart = (typeof HEALTH_PARTS)[number];

export type HealthReport = {
  /** Every part is ok. */
  readonly ok: boolean;
  readonly executes: boolean;
  readonly checks: Readonly<
    Record<'eventLog' | 'signingKey' | 'transparencyLog' | 'readModels' | 'projections', PartHealth>
  > &
    Readonly<Record<'facilitator' | 'chain' | 'schedules', PartHealth | null>>;
};

export function healthReport(facts: HealthFacts): HealthReport {
  const wrong = wrongParts(facts);
  const state = <P extends HealthPart>(part: P): PartHealth => {
    const found = wrong[part];
    if (found === null) return { ok: true };
    return { ok: false, reason: found.code, message: sentenceOf(part, found.code, found.facts) };
  };
  const checks = {
    eventLog: state('eventLog'),
    signingKey: state('signingKey'),
    transparencyLog: state('transparencyLog'),
    readModels: state('readModels'),
    projections: state('projections'),
    facilitator: facts.facilitator && state('facilitator'),
    chain: facts.chain && state('chain'),
    schedules: facts.schedules && state('schedules'),
  };
  return {
    ok: Object.values(checks).every((part) => part?.ok !== false),
    executes:
      facts.eventLog.ok && facts.signingKey.ok && facts.checkpoint?.problem !== 'checkpoint_forgotten',
    checks,
  };
}

export function wrongParts(facts: HealthFacts): { readonly [P in HealthPart]: Wrong<P> | null } {
  const { eventLog, signingKey, checkpoint, readModels, projection, facilitator, chain, schedules } = facts;
  return {
    eventLog: wrongLog(eventLog),
    signingKey: signingKey.ok ? null : { code: 'no_signing_key', facts: validFromFact(signingKey.validFrom) },
    transparencyLog: wrongCheckpoint(checkpoint),
    readModels: readModels.ok ? null : { code: readModels.problem, facts: whyFact(readModels.refusal) },
    projections: wrongProjection(projection),
    facilitator: facilitator === null || facilitator.ok ? null : { code: facilitator.problem },
    chain: wrongChain(chain),
    schedules: schedules?.wrong ?? null,
  };
}

function wrongLog(log: LogHealth): Wrong<'eventLog'> | null {
  const events = log.damaged === undefined ? null : damagedText(log.damaged);
  if (!log.ok) return { code: log.problem, facts: { damage: events === null ? '' : ` ${events}.` } };
  return events === null ? null : { code: 'damaged_events', facts: { events } };
}

function damagedText({ count, first }: DamagedEvents): string {
  const place = damagedPlace(first);
  return count === 1
    ? `1 event cannot be read as it was written: ${place}`
    : `${count} events cannot be read as they were written, the first at ${place}`;
}

function wrongCheckpoint(checkpoint: HealthFacts['checkpoint']): Wrong<'transparencyLog'> | null {
  if (checkpoint === null) return null;
  const { problem, waitingMs } = checkpoint;
  if (problem !== null) return { code: problem };
  return waitingMs <= CHECKPOINT_WAIT_MS ? null : { code: 'checkpoint_overdue' };
}

function wrongProjection({ lagMs, barrier }: HealthFacts['projection']): Wrong<'projections'> | null {
  if (barrier !== null) return { code: barrier.problem, facts: { place: barrier.place } };
  return lagMs <= ATTENTION.lagMs ? null : { code: 'lagging' };
}

function wrongChain(chain: HealthFacts['chain']): Wrong<'chain'> | null {
  if (chain === null || chain.ok) return null;
  switch (chain.problem) {
    case 'not_compared':
      return { code: chain.problem, facts: { since: chain.since } };
    case 'books_differ_from_chain':
      return { code: chain.problem, facts: differenceFacts(chain) };
    default:
      return { code: chain.problem };
  }
}

/** Of the blocks whose transfers and balance differ. */
export const differenceFacts = ({ units, fromBlock, toBlock }: Differs): ConditionFacts => ({
  units: String(units),
  fromBlock,
  toBlock,
});

const whyFact = (refusal: string | undefined): ConditionFacts =>
  refusal === undefined ? {} : { why: ` The reason: ${refusal}.` };

export const validFromFact = (validFrom: string | null): ConditionFacts => ({
  validFrom: validFrom === null ? '' : `; a key is valid from ${validFrom}`,
});

/** For callers, too. */
export const noSigningKey = (validFrom: string | null): string =>
  sentenceOf('signingKey', 'no_signing_key', validFromFact(validFrom));
