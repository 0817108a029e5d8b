// Blocks a service at one exact step: its embedded log refuses all events, or those of one type, so that the service
// repeats the append until it is killed or the block is removed.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EventType } from '#src/domain/events.ts';

/** `type`: all types if absent. Returns the function that removes the block. */
export function holdBack(dataDir: string, type?: EventType): () => void {
  const run = (sql: string) => {
    const db = new DatabaseSync(join(dataDir, 'events.db'), { timeout: 10_000 });
    db.exec(sql);
    db.close();
  };
  const name = `held_${type ?? 'all'}`;
  run(`CREATE TRIGGER ${name} BEFORE INSERT ON events WHEN ${type === undefined ? 1 : `NEW.type = '${type}'`}
       BEGIN SELECT RAISE(ABORT, 'held back by a test'); END`);
  return () => run(`DROP TRIGGER ${name}`);
}
