// The events of an exported file, and what is wrong with the file itself: lines that are none, an end that is missing or
// tells other counts, a cut tail.

import { jobOfStream, placeOf } from '#src/domain/audit/finding.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import {
  type ExportEnd,
  type ExportHead,
  MAX_AUDITED_LINE_BYTES,
  NO_EVENTS,
  parseHead,
  parseLine,
  withEvent,
} from '../domain/audit/export-format.ts';
import type { ExportFindingKind, Finding } from '../domain/audit/finding.ts';
import { type DomainEvent, STREAM } from '../domain/events.ts';
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
  for await (const line of linesOf(chunks, MAX_AUDITED_LINE_BYTES)) {
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
  let so = NO_EVENTS;
  let ended = false;
  let origin: string | null = null;
  const found = (kind: ExportFindingKind, message: string, place: Partial<Finding> = {}) =>
    onFinding({ kind, stream: null, revision: null, jobId: null, position: null, ...place, message });

  function judgeEnd(end: ExportEnd, number: number): void {
    if (ended) found('export_line_wrong', `Line ${number} is a second end.`);
    ended = true;
    for (const name of ['events', 'streams', 'head'] as const) {
      const [told, counted] = [end[name], so[name]];
      if (told === counted) continue;
      const message = `The end line tells ${name} ${told ?? 'none'}, and the lines before it have ${counted ?? 'none'}.`;
      found('export_end_mismatch', message, { position: so.head });
    }
  }

  return {
    /** null: the line is no event. */
    event({ number, text, whole }: Line): RecordedEvent | null {
      if (!whole) {
        found('export_cut', `The last line, ${number}, is cut.`, { position: so.head });
        return null;
      }
      const line = text === null ? UNREADABLE : parseLine(text);
      if (line.kind === 'end') {
        judgeEnd(line.end, number);
        return null;
      }
      if (line.kind === 'wrong') {
        const { stream, revision } = line;
        const place = { stream, revision, jobId: stream === null ? null : jobOfStream(stream) };
        found('export_line_wrong', `Line ${number}: ${line.problem}.`, place);
        return null;
      }
      const { event } = line;
      if (ended) found('export_line_wrong', `Line ${number} follows the end.`, placeOf(event));
      so = withEvent(so, event);
      origin ??= originIn(event);
      return event;
    },
    end(head: ExportHead): void {
      if (!ended)
        found('export_cut', `The end line is missing after ${so.events} events: the tail was cut.`, {
          position: so.head,
        });
      if (head.origin === origin) return;
      const message = `The first line names the transparency log ${head.origin ?? 'none'}, the events ${origin ?? 'none'}.`;
      found('export_origin_mismatch', message);
    },
  };
}

const UNREADABLE = {
  kind: 'wrong',
  problem: 'it is longer than any that a relay writes, or no UTF-8',
  stream: null,
  revision: null,
} as const;

function originIn(recorded: RecordedEvent): string | null {
  if (recorded.stream !== STREAM.receiptLog) return null;
  const event: DomainEvent | null = decodeEvent(recorded);
  return event?.type === 'CheckpointSigned' ? event.data.origin : null;
}
