// The events of an exported file, and what is wrong with the file itself: lines that are none, an end that is missing or
// tells other counts, a cut tail.
import type { ExportEnd, ExportHead } from '../domain/audit/export-format.ts';
import { parseHead, parseLine } from '../domain/audit/export-format.ts';
import type { Finding } from '../domain/audit/finding.ts';
import { type DomainEvent, STREAM } from '../domain/events.ts';
import { decodeEvent, type RecordedEvent } from '../domain/recorded.ts';
import { CannotRun } from './exit.ts';
import { type Line, linesOf } from './export-lines.ts';
import { nameOf } from './read-source.ts';

type Found = (finding: Finding) => void;

/** `onLine`: bytes so far. Throws `CannotRun` where it is no export, or one that begins in the middle. */
export async function* eventsOfExport(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
  onFinding: Found,
  onLine: (bytes: number) => void,
): AsyncGenerator<RecordedEvent, void, undefined> {
  const judge = exportJudge(onFinding);
  let head: ExportHead | null = null;
  for await (const line of linesOf(chunks)) {
    if (head === null) {
      head = headOf(line, source);
      continue;
    }
    const event = judge.event(line);
    onLine(line.end);
    if (event !== null) yield event;
  }
  if (head === null) throw noExport(source);
  judge.end(head);
}

const noExport = (source: string) =>
  new CannotRun(`${nameOf(source)} is no export: relay export --out FILE makes one`);

function headOf({ text, whole }: Line, source: string): ExportHead {
  const head = whole && text !== null ? parseHead(text) : null;
  if (head === null) throw noExport(source);
  if (head.from === null) return head;
  throw new CannotRun(
    `${nameOf(source)} begins in the middle of a log: only an export from the first event on can be audited`,
  );
}

function exportJudge(onFinding: Found) {
  let [events, streams] = [0, 0];
  let last: string | null = null;
  let ended = false;
  let origin: string | null = null;
  const found = (kind: Finding['kind'], message: string, place: Partial<Finding> = {}) =>
    onFinding({ kind, stream: null, revision: null, jobId: null, position: null, ...place, message });

  function judgeEnd(end: ExportEnd, number: number): void {
    if (ended) found('export_line_wrong', `Line ${number} is a second end.`);
    ended = true;
    for (const [name, told, counted] of [
      ['events', end.events, events],
      ['streams', end.streams, streams],
      ['head', end.head, last],
    ] as const) {
      if (told === counted) continue;
      const message = `The end line tells ${name} ${told ?? 'none'}, and the lines before it have ${counted ?? 'none'}.`;
      found('export_end_mismatch', message, { position: last });
    }
  }

  return {
    /** null: the line is no event. */
    event({ number, text, whole }: Line): RecordedEvent | null {
      if (!whole) {
        found('export_cut', `The last line, ${number}, is cut.`, { position: last });
        return null;
      }
      const line = text === null ? UNREADABLE : parseLine(text);
      if (line.kind === 'end') {
        judgeEnd(line.end, number);
        return null;
      }
      if (line.kind === 'wrong') {
        const { stream, revision } = line;
        const place = { stream, revision, jobId: stream === null ? null : jobOf(stream) };
        found('export_line_wrong', `Line ${number}: ${line.problem}.`, place);
        return null;
      }
      const { event } = line;
      const { stream, position } = event;
      const place = { stream, revision: String(event.revision), jobId: jobOf(stream), position };
      if (ended) found('export_line_wrong', `Line ${number} follows the end.`, place);
      events++;
      if (event.revision === 0n) streams++;
      last = position;
      origin ??= originIn(event);
      return event;
    },
    end(head: ExportHead): void {
      if (!ended)
        found('export_cut', `The end line is missing after ${events} events: the tail was cut.`, {
          position: last,
        });
      if (head.origin === origin) return;
      const message = `The first line names the receipt log ${head.origin ?? 'none'}, the events ${origin ?? 'none'}.`;
      found('export_origin_mismatch', message);
    },
  };
}

const UNREADABLE = {
  kind: 'wrong',
  problem: 'it is longer than a line of an export can be, or no UTF-8',
  stream: null,
  revision: null,
} as const;

function originIn(recorded: RecordedEvent): string | null {
  if (recorded.stream !== STREAM.receiptLog) return null;
  const event: DomainEvent | null = decodeEvent(recorded);
  return event?.type === 'CheckpointSigned' ? event.data.origin : null;
}

const jobOf = (stream: string): string | null =>
  stream.startsWith(STREAM.job('')) ? stream.slice(STREAM.job('').length) : null;
