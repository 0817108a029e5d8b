// What an earlier run of an export left in its file. A file that is no export, or none that can be gone on with, is
// refused and never touched.
import {
  EXPORT_FORMAT,
  type ExportEnd,
  type ExportHead,
  endLine,
  NO_EVENTS,
  parseHead,
  parseLine,
  withEvent,
} from '#src/domain/audit/export-format.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { CannotRun } from './exit.ts';
import { linesOf } from './export-lines.ts';

/** Up to the last whole event. */
export type Begun = {
  /** null: nothing yet, not even a head. */
  readonly head: ExportHead | null;
  readonly first: RecordedEvent | null;
  readonly last: RecordedEvent | null;
  /** What an end line would tell here. */
  readonly end: ExportEnd;
  /** Its end line follows, and nothing else. */
  readonly finished: boolean;
  /** Bytes up to the end of the last whole event. */
  readonly length: number;
};

const NOTHING: Begun = {
  head: null,
  first: null,
  last: null,
  end: NO_EVENTS,
  finished: false,
  length: 0,
};

/** `onRead`: bytes and events so far. Throws `CannotRun`, naming `path` and the line. */
export async function readBegun(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  onRead: (bytes: number, events: number) => void,
): Promise<Begun> {
  let begun = NOTHING;
  for await (const { number, text, end, whole } of linesOf(chunks)) {
    if (number === 1) {
      if (!whole && isHalfHead(text)) return NOTHING;
      const head = whole && text !== null ? parseHead(text) : null;
      if (head === null)
        throw new CannotRun(`${path} is there already and is no export: it is left as it is`);
      begun = { ...NOTHING, head, length: end };
      continue;
    }
    // What was being written when the run was killed, also where it is an end.
    if (!whole) return { ...begun, finished: false };
    const next = begun.finished ? 'it follows the end' : after(begun, text, end);
    if (typeof next === 'string')
      throw new CannotRun(`${path} cannot be gone on with, line ${number}: ${next}; name another file`);
    begun = next;
    onRead(end, begun.end.events);
  }
  return begun;
}

const START = `{"format":"${EXPORT_FORMAT}",`;

const isHalfHead = (text: string | null): boolean =>
  text !== null && (START.startsWith(text) || text.startsWith(START));

/** A text says why the line cannot stand there. */
function after(begun: Begun, text: string | null, length: number): Begun | string {
  const line = parseLine(text ?? '');
  if (line.kind === 'wrong') return line.problem;
  if (line.kind === 'end')
    return endLine(line.end) === endLine(begun.end)
      ? { ...begun, finished: true }
      : 'its counts are not those of the lines before it';
  const { event } = line;
  if (begun.last !== null && event.position <= begun.last.position) return 'it is out of order';
  return {
    ...begun,
    first: begun.first ?? event,
    last: event,
    end: withEvent(begun.end, event),
    length,
  };
}
