// The last event that rows tell, as their checkpoint names it. Positions alone say nothing of a log that was restored from
// a backup and has grown since: other events stand at them.
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import type { Checkpoint } from './checkpoint.ts';

/** `<revision> <id> <stream>`. */
export const eventMark = ({ revision, id, stream }: Pick<RecordedEvent, 'revision' | 'id' | 'stream'>) =>
  `${revision} ${id} ${stream}`;

/** Whether the log has each of these events where it stood; of rows that name none nothing is asked. */
export async function logHolds(
  log: Pick<EventLog, 'readStream'>,
  told: readonly Pick<Checkpoint, 'position' | 'event'>[],
): Promise<boolean> {
  for (const { position, event } of told) {
    if (event === null) continue;
    const [, revision = '', stream = ''] = /^(\d+) \S+ (.+)$/s.exec(event) ?? [];
    if (stream === '') return false;
    const [found] = await log.readStream(stream, { from: BigInt(revision), max: 1 });
    if (found?.position !== position || eventMark(found) !== event) return false;
  }
  return true;
}
