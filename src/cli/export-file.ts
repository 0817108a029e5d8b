// Reads an export line by line: for the auditor, who gets every problem as a finding, and for
// `relay export`, which continues after the last complete event.

import {
  EXPORT_FORMAT,
  type ExportEnd,
  type ExportHead,
  type ExportLine,
  endLine,
  MAX_AUDITED_LINE_BYTES,
  MAX_LINE_BYTES,
  NO_EVENTS,
  parseHead,
  parseLine,
  withEvent,
} from '#src/domain/audit/export-format.ts';
import type { Finding, FindingKind } from '#src/domain/audit/finding.ts';
import { jobOfStream, locationOf } from '#src/domain/audit/finding.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import { CannotRun } from './exit.ts';
import { nameOf } from './read-source.ts';

export type Line = {
  /** From 1. */
  readonly number: number;
  /** Without its newline; null if it is too long or not UTF-8. */
  readonly text: string | null;
  /** Offset of the first byte after it. */
  readonly end: number;
  /** Ends with a newline; only the last line may lack it. */
  readonly whole: boolean;
};

const NEWLINE = 10;

/** Yields the lines of a file of any size; at most one line of `maxBytes` is in memory. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<Line, void, undefined> {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let parts: Uint8Array[] = [];
  let [length, number, end] = [0, 0, 0];
  const add = (part: Uint8Array) => {
    length += part.length;
    end += part.length;
    // Only the length of a line that is too long matters.
    if (length <= maxBytes) parts.push(part);
  };
  const finishLine = (whole: boolean): Line => {
    number++;
    if (whole) end++;
    const text = length > maxBytes ? null : decoded(utf8, parts);
    parts = [];
    length = 0;
    return { number, text, end, whole };
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at));
      yield finishLine(true);
      from = at + 1;
    }
    // A copy, because the reader of the file may reuse its buffer.
    if (from < chunk.length) add(chunk.slice(from));
  }
  if (length > 0) yield finishLine(false);
}

function decoded(utf8: TextDecoder, parts: readonly Uint8Array[]): string | null {
  const [first = new Uint8Array(), ...more] = parts;
  try {
    return utf8.decode(more.length === 0 ? first : Buffer.concat(parts));
  } catch {
    return null;
  }
}

const UNREADABLE = {
  kind: 'wrong',
  problem: 'it is longer than any line that a relay writes, or it is not UTF-8',
  stream: null,
  revision: null,
} as const;

const lineOf = (text: string | null): ExportLine => (text === null ? UNREADABLE : parseLine(text));

type Found = (finding: Finding) => void;

/**
 * Yields the events of an export; problems of the file itself are findings. `onLine`: bytes so far. Throws `CannotRun` if
 * the file is not an export, or begins in the middle of a log.
 */
export async function* eventsOfExport(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
  onFinding: Found,
  onLine: (bytes: number) => void,
): AsyncGenerator<RecordedEvent, void, undefined> {
  const found = (kind: FindingKind, message: string, place: Partial<Finding> = {}) =>
    onFinding({ kind, stream: null, revision: null, jobId: null, position: null, ...place, message });
  let head: ExportHead | null = null;
  let counted = NO_EVENTS;
  let ended = false;
  let origin: string | null = null;
  for await (const { number, text, end, whole } of linesOf(chunks, MAX_AUDITED_LINE_BYTES)) {
    if (head === null) {
      head = requireHead(source, whole ? text : null);
      continue;
    }
    onLine(end);
    if (!whole) {
      found('export_cut', `The last line, ${number}, is incomplete.`, { position: counted.head });
      break;
    }
    const line = lineOf(text);
    if (line.kind === 'wrong') {
      const { stream, revision } = line;
      const place = { stream, revision, jobId: stream === null ? null : jobOfStream(stream) };
      found('export_line_wrong', `Line ${number}: ${line.problem}.`, place);
    } else if (line.kind === 'end') {
      if (ended) found('export_line_wrong', `Line ${number} is a second end line.`);
      ended = true;
      for (const message of mismatches(line.end, counted))
        found('export_end_mismatch', message, { position: counted.head });
    } else {
      const { event } = line;
      if (ended) found('export_line_wrong', `Line ${number} follows the end line.`, locationOf(event));
      counted = withEvent(counted, event);
      origin ??= originIn(event);
      yield event;
    }
  }
  if (head === null) throw notAnExport(source);
  if (!ended) {
    const message = `The end line is missing after ${counted.events} events: the rest was removed.`;
    found('export_cut', message, { position: counted.head });
  }
  if (head.origin !== origin) {
    const [named, recorded] = [head.origin ?? 'none', origin ?? 'none'];
    const message = `The first line names the transparency log ${named}, the events ${recorded}.`;
    found('export_origin_mismatch', message);
  }
}

const notAnExport = (source: string) =>
  new CannotRun(`${nameOf(source)} is not an export: create one with relay export --out FILE`);

function requireHead(source: string, text: string | null): ExportHead {
  const head = text === null ? null : parseHead(text);
  if (head === null) throw notAnExport(source);
  if (head.from === null) return head;
  throw new CannotRun(
    `${nameOf(source)} begins in the middle of a log: only an export from the first event on can be audited`,
  );
}

const mismatches = (claimed: ExportEnd, counted: ExportEnd): readonly string[] =>
  (['events', 'streams', 'head'] as const).flatMap((name) =>
    claimed[name] === counted[name]
      ? []
      : [
          `The end line states ${name} ${claimed[name] ?? 'none'}, the lines before it have ${counted[name] ?? 'none'}.`,
        ],
  );

function originIn(recorded: RecordedEvent): string | null {
  if (recorded.stream !== STREAM.receiptLog) return null;
  const event: DomainEvent | null = decodeEvent(recorded);
  return event?.type === 'CheckpointSigned' ? event.data.origin : null;
}

/** An earlier export up to its last complete event. */
export type ExistingExport = {
  /** null: the file is missing, empty, or ends within its first line. */
  readonly head: ExportHead | null;
  readonly first: RecordedEvent | null;
  readonly last: RecordedEvent | null;
  /** The values of an end line at this point. */
  readonly end: ExportEnd;
  /** The end line follows, and nothing else. */
  readonly finished: boolean;
  /** Bytes up to the end of the last complete event. */
  readonly length: number;
};

export const NO_EXPORT: ExistingExport = {
  head: null,
  first: null,
  last: null,
  end: NO_EVENTS,
  finished: false,
  length: 0,
};

/** `onRead`: bytes and events so far. Throws `CannotRun` if the file was not written by an interrupted or finished export. */
export async function readExisting(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  onRead: (bytes: number, events: number) => void,
): Promise<ExistingExport> {
  let existing = NO_EXPORT;
  for await (const { number, text, end, whole } of linesOf(chunks)) {
    if (number === 1) {
      if (!whole && isPartialHead(text)) return NO_EXPORT;
      const head = whole && text !== null ? parseHead(text) : null;
      if (head === null) throw new CannotRun(`${path} exists and is not an export: it is not overwritten`);
      existing = { ...NO_EXPORT, head, length: end };
      continue;
    }
    // The run was killed while it wrote this line.
    if (!whole) return { ...existing, finished: false };
    const next = existing.finished ? 'it follows the end line' : withLine(existing, lineOf(text), end);
    if (typeof next === 'string')
      throw new CannotRun(`${path} cannot be continued, line ${number}: ${next}; name another file`);
    existing = next;
    onRead(end, existing.end.events);
  }
  return existing;
}

const START = `{"format":"${EXPORT_FORMAT}",`;

const isPartialHead = (text: string | null): boolean =>
  text !== null && (START.startsWith(text) || text.startsWith(START));

/** Returns a text if the line is invalid at this point: the reason. */
function withLine(existing: ExistingExport, line: ExportLine, length: number): ExistingExport | string {
  if (line.kind === 'wrong') return line.problem;
  if (line.kind === 'end')
    return endLine(line.end) === endLine(existing.end)
      ? { ...existing, finished: true }
      : 'its counts differ from the lines before it';
  const { event } = line;
  if (existing.last !== null && event.position <= existing.last.position) return 'it is out of order';
  return {
    ...existing,
    first: existing.first ?? event,
    last: event,
    end: withEvent(existing.end, event),
    length,
  };
}
