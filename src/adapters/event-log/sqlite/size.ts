// What the embedded log has stored, and since when, at the cost of a few short reads however long it is.
import type { DatabaseSync } from 'node:sqlite';
import type { StoredEvents } from '#src/domain/monitoring/growth.ts';

const PAGES = 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size';

/** null: no event. `sinceMs`: of `recentEvents`, Unix ms. */
export function storedEvents(db: DatabaseSync, sinceMs: number): StoredEvents | null {
  const events = Number(db.prepare('SELECT max(position) AS position FROM events').get()?.position ?? 0);
  if (events === 0) return null;
  const time = db.prepare('SELECT created FROM events WHERE position = ?');
  const createdAt = (position: number) => Number(time.get(position)?.created);
  // The first position that is not older. Where a clock was set back, it is one of several.
  let [from, to] = [1, events + 1];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (createdAt(middle) < sinceMs) from = middle + 1;
    else to = middle;
  }
  return {
    bytes: Number(db.prepare(PAGES).get()?.bytes),
    events,
    firstAt: Number(db.prepare('SELECT created FROM events ORDER BY position LIMIT 1').get()?.created),
    recentEvents: events + 1 - from,
  };
}
