// Up to where a rebuild goes: as far as the live rows stand, model by model, so that rebuilt rows are equal to them.
import type { EventLog } from '#src/ports/event-log.ts';
import { type Checkpoints, readCheckpoints } from './checkpoint.ts';
import { logHolds } from './last-event.ts';
import { CannotRebuild } from './rebuild-lock.ts';
import type { ReadModel } from './registry.ts';
import type { Db } from './rows.ts';

export type Targets = {
  /** Model → position of the last event that its rows tell. */
  readonly of: ReadonlyMap<string, string>;
  /** Models whose rows no checkpoint tells of: their own is to be written. */
  readonly untold: readonly ReadModel[];
  /** The live rows, all of them, are of another history: of another log, or of more than this one has. */
  readonly foreign: boolean;
  /** Some of them are of another log. */
  readonly ofOtherLog: boolean;
};

export type Ends = {
  /** Id of the log's first event and position of its last, at the beginning. */
  readonly origin: string;
  readonly head: string;
  /** The live rows told what the log had not: it was restored, and what it has got since is other events. */
  readonly ahead: boolean;
};

/** What stands in the live schema, in this transaction. `head`: for models without any rows. */
export async function readTargets(
  tx: Db,
  models: readonly ReadModel[],
  { origin, head, ahead }: Ends,
): Promise<Targets> {
  const stored = await readCheckpoints(tx);
  const ofOtherLog = isOther(stored, origin);
  const foreign = ahead || ofOtherLog;
  const told = foreign ? new Map<string, string>() : stored.told;
  const stands = [...told.values()].sort().at(-1) ?? head;
  return {
    of: new Map(models.map(({ name }) => [name, told.get(name) ?? stands])),
    untold: models.filter(({ name }) => !told.has(name)),
    foreign,
    ofOtherLog,
  };
}

const isOther = ({ origins }: Checkpoints, origin: string): boolean => origins.some((id) => id !== origin);

/** Up to here all models can be folded alike. */
export const lowest = ({ of }: Targets): string => [...of.values()].sort()[0] ?? '';
export const highest = ({ of }: Targets): string => [...of.values()].sort().at(-1) ?? '';

/**
 * Whether the rows tell what the log has not; positions of another log say nothing about that. The rows first: a service
 * that projects goes on meanwhile.
 */
export async function areAhead(
  tx: Db,
  log: Pick<EventLog, 'head' | 'readStream'>,
  { origin, head }: Pick<Ends, 'origin' | 'head'>,
): Promise<boolean> {
  const stored = await readCheckpoints(tx);
  if (isOther(stored, origin)) return false;
  const told = [...stored.told.values()].sort().at(-1) ?? '';
  if (told > head && told > ((await log.head()) ?? '')) return true;
  return !(await logHolds(log, stored.all));
}

/** Throws `CannotRebuild` where the log is empty. */
export async function endsOf(log: Pick<EventLog, 'readAll' | 'head'>): Promise<Omit<Ends, 'ahead'>> {
  const [first] = await log.readAll({ after: null, max: 1 });
  const head = await log.head();
  if (first === undefined || head === null)
    throw new CannotRebuild('the event log is empty: nothing to rebuild');
  return { origin: first.id, head };
}
