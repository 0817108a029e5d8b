// Holds a service still at one exact place: from now on its embedded log takes no event, or none of a type, so that whoever
// appends one repeats it until it is killed, or let go.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EventType } from '#src/domain/events.ts';

/** `type`: every one where absent. Returns what lets go. */
export function holdBack(dataDir: string, type?: EventType): () => void {
  const run = (sql: string) => {
    const db = new DatabaseSync(join(dataDir, 'events.db'), { timeout: 10_000 });
    db.exec(sql);
    db.close();
  };
  run(`CREATE TRIGGER held_by_a_test BEFORE INSERT ON events WHEN ${type === undefined ? 1 : `NEW.type = '${type}'`}
       BEGIN SELECT RAISE(ABORT, 'held back by a test'); END`);
  return () => run('DROP TRIGGER held_by_a_test');
}
