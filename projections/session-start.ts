// What a session begins with: where the rows stand, of which log, and by which versions of the models they were told.
import type { Projector } from './batch.ts';
import { clearRows, readCheckpoints } from './checkpoint.ts';
import type { RunnerDeps, Session } from './session.ts';
import type { VersionNotice } from './version-notice.ts';
import { isNewer, readVersionGaps } from './versions.ts';

export type Standing = Pick<Session, 'checkpoint' | 'told' | 'role'>;

const NOTHING: Standing = { checkpoint: null, told: new Map(), role: 'projects' };

/**
 * Where the store is disposable, rows of another log or of another version of their model are cleared. Elsewhere those
 * of another log are refused; older ones are gone on with, and newer ones followed, until a rebuild.
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
    if (!store.disposable) throw new Error('the read models are of another event log: rebuild them');
    return cleared('the read models are of another event log: replaying them');
  }
  const gaps = await readVersionGaps(db, models, stored.told);
  if (store.disposable && gaps.length > 0) {
    return cleared('the read models were told by another version: replaying them', { models: gaps });
  }
  notice(gaps);
  return gaps.some(isNewer)
    ? { checkpoint: stored.standing(set), told: stored.told, role: 'superseded' }
    : { checkpoint: stored.own(set), told: stored.told, role: 'projects' };

  async function cleared(message: string, fields?: { readonly models: typeof gaps }): Promise<Standing> {
    logger.warn(message, fields);
    const tables = projector.shapes.map(({ name }) => name);
    await clearRows(db, tables);
    return NOTHING;
  }
}
