// What a session begins with: where the rows stand, of which log, and by which versions of the models they were told.
import type { Projector } from './batch.ts';
import { type Checkpoints, clearRows, readCheckpoints } from './checkpoint.ts';
import { logHolds } from './last-event.ts';
import type { RunnerDeps, Session } from './session.ts';
import type { VersionNotice } from './version-notice.ts';
import { isNewer, readVersionGaps } from './versions.ts';

export type Standing = Pick<Session, 'checkpoint' | 'told' | 'role'>;

const NOTHING: Standing = { checkpoint: null, told: new Map(), role: 'projects' };

/** Rows that tell what the log does not: only a rebuild makes them answer again. */
export class RowsRefused extends Error {}

/**
 * Where the store is disposable, rows of another log, rows of more than this one has and rows of another version of their
 * model are cleared. Elsewhere the former two are refused; older ones are gone on with, and newer ones followed, until a
 * rebuild. Throws `RowsRefused`, and what store and log throw.
 */
export async function standingRows(
  deps: RunnerDeps & { readonly notice: VersionNotice },
  projector: Projector,
): Promise<Standing> {
  const { log, store, logger, notice } = deps;
  const { db, models, set } = projector;
  const stored = await readCheckpoints(db);
  if (stored.origins.length === 0) return NOTHING;
  const [first] = await log.readAll({ after: null, max: 1 });
  if (!stored.origins.every((origin) => origin === first?.id)) {
    return unfit(
      'the read models are of another event log',
      'check the configuration, or rebuild them with --other-log',
    );
  }
  // A backup of the log was restored, and may have grown beyond the rows since.
  // The log is asked after the store: another process may project beyond a head that was read before.
  if (isAhead(stored, await log.head()))
    return unfit('the read models are ahead of the event log', 'rebuild them');
  if (!(await logHolds(log, stored.all)))
    return unfit('the read models tell events that the event log does not have', 'rebuild them');
  const gaps = await readVersionGaps(db, models, stored.told);
  if (store.disposable && gaps.length > 0) {
    return cleared('the read models were told by another version: replaying them', { models: gaps });
  }
  notice(gaps);
  return gaps.some(isNewer)
    ? { checkpoint: stored.standing(set), told: stored.told, role: 'superseded' }
    : { checkpoint: stored.own(set), told: stored.told, role: 'projects' };

  async function unfit(what: string, remedy: string): Promise<Standing> {
    if (!store.disposable) throw new RowsRefused(`${what}: ${remedy}`);
    return cleared(`${what}: replaying them`);
  }

  async function cleared(message: string, fields?: { readonly models: typeof gaps }): Promise<Standing> {
    logger.warn(message, fields);
    const tables = projector.shapes.map(({ name }) => name);
    await clearRows(db, tables);
    return NOTHING;
  }
}

const isAhead = ({ told }: Checkpoints, head: string | null): boolean =>
  head === null || [...told.values()].some((position) => position > head);
