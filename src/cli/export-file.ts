// Reads an export line by line: for the auditor, who gets every problem as a finding, and for `relay export`, which
// continues after the last complete event.

import {
  EXPORT_FORMAT,
  type ExportEnd,
  type ExportHead,
  type ExportLine,
  endLine,
  MAX_LINE_BYTES,
  NO_EVENTS,
  parseHead,
  parseLine,
  withDamage,
  withEvent,
} from '#src/domain/audit/export-format.ts';
import { type Finding, type FindingKind, jobOfStream, NOWHERE } from '#src/domain/audit/finding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { newerKind } from '#src/domain/event-versions.ts';
import type { Scanned } from '#src/ports/event-scan.ts';
import { originIn } from '#src/usecases/audit/export-log.ts';
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

/** `cut`: the last line is incomplete. `end`: offset of the first byte after the line. */
type ReadLine = {
  readonly number: number;
  readonly end: number;
  readonly line: ExportLine | { readonly kind: 'head'; readonly head: ExportHead } | { readonly kind: 'cut' };
};

/**
 * The lines of an export, the head first; nothing for a file that is empty or was cut within its head. Throws
 * `CannotRun` if it is not an export from the first event of a log on.
 */
async function* readExport(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<ReadLine, void, undefined> {
  for await (const { number, text, end, whole } of linesOf(chunks)) {
    if (number > 1) yield { number, end, line: whole ? lineOf(text) : { kind: 'cut' } };
    else if (whole || text === null || !isPartialHead(text))
      yield { number, end, line: { kind: 'head', head: requireHead(source, whole ? text : null) } };
  }
}

const lineOf = (text: string | null): ExportLine => (text === null ? UNREADABLE : parseLine(text));

const UNREADABLE = {
  kind: 'wrong',
  problem: 'it is longer than any line that a relay writes, or it is not UTF-8',
  stream: null,
  revision: null,
} as const;

const START = `{"format":"${EXPORT_FORMAT}",`;

const isPartialHead = (text: string): boolean => START.startsWith(text) || text.startsWith(START);

const notAnExport = (source: string) =>
  new CannotRun(`${nameOf(source)} is not an export: create one with relay export --out FILE`);

function requireHead(source: string, text: string | null): ExportHead {
  const head = text === null ? null : parseHead(text);
  if (head === null) throw notAnExport(source);
  if (head.from === null) return head;
  throw new CannotRun(
    `${nameOf(source)} begins in the middle of a log: an export begins with the first event`,
  );
}

/** Yields the events, and the damage in place of events; problems of the file itself are findings. `onLine`: bytes so far. Throws `CannotRun`. */
export async function* eventsOfExport(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
  onFinding: (finding: Finding) => void,
  onLine: (bytes: number) => void,
): AsyncGenerator<Scanned, void, undefined> {
  const found = (kind: FindingKind, message: string, place: Partial<Finding> = {}) =>
    onFinding({ ...NOWHERE, kind, ...place, message });
  let counted = NO_EVENTS;
  let [begun, ended] = [false, false];
  /** By the head line, and by the first checkpoint. */
  let [named, origin]: (string | null)[] = [null, null];
  let isRead = true;
  for await (const { number, end, line } of readExport(source, chunks)) {
    onLine(end);
    if (ended) found('export_line_wrong', `Line ${number} follows the end line.`);
    if (line.kind === 'head') {
      begun = true;
      named = line.head.origin;
    } else if (line.kind === 'wrong') {
      const { stream, revision, problem } = line;
      const place = { stream, revision, jobId: stream === null ? null : jobOfStream(stream) };
      found('export_line_wrong', `Line ${number} is wrong: ${problem}.`, place);
    } else if (line.kind === 'end') {
      ended = true;
      for (const message of mismatches(line.end, counted))
        found('export_end_mismatch', message, { position: counted.head });
    } else if (line.kind === 'event') {
      counted = withEvent(counted, line.event);
      origin ??= originIn(line.event);
      isRead &&= newerKind(line.event) === null;
      yield { kind: 'event', event: line.event };
    } else if (line.kind === 'damaged') {
      counted = withDamage(counted, line.damage);
      yield line;
    }
  }
  if (!begun) throw notAnExport(source);
  // A file that is cut may lack the checkpoint; one of a newer release may have it in an event that is not read here.
  if (named !== origin && ((ended && isRead) || origin !== null)) {
    const message = `The first line names ${named ?? 'no transparency log'}, but the first checkpoint is of ${origin ?? 'no transparency log'}.`;
    found('export_origin_mismatch', message);
  }
  if (ended) return;
  const message = `The end line is missing after ${counted.events} events: the rest was removed.`;
  found('export_cut', message, { position: counted.head });
}

const mismatches = (claimed: ExportEnd, counted: ExportEnd): readonly string[] =>
  (['events', 'streams', 'head'] as const).flatMap((name) =>
    claimed[name] === counted[name]
      ? []
      : [
          `The end line states ${claimed[name] ?? 'none'} as ${name}, but the lines before it have ${counted[name] ?? 'none'}.`,
        ],
  );

/** An earlier export up to its last complete event. */
export type ExistingExport = {
  /** null: the file is missing, empty, or ends within its first line. */
  readonly head: ExportHead | null;
  readonly last: RecordedEvent | null;
  /** The values of an end line at this point. */
  readonly end: ExportEnd;
  /** The end line follows, and nothing else. */
  readonly finished: boolean;
  /** Bytes up to the end of the last complete event. */
  readonly length: number;
  /** It has lines for damage: the events may have been put back since. */
  readonly hasDamage: boolean;
};

export const NO_EXPORT: ExistingExport = {
  head: null,
  last: null,
  end: NO_EVENTS,
  finished: false,
  length: 0,
  hasDamage: false,
};

/** `onRead`: bytes and events so far. Throws `CannotRun` if the file was not written by an interrupted or finished export. */
export async function readExisting(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  onRead: (bytes: number, events: number) => void,
): Promise<ExistingExport> {
  let existing = NO_EXPORT;
  for await (const { number, line, end } of readExport(path, chunks)) {
    const next = withLine(existing, line, end);
    if (typeof next === 'string')
      throw new CannotRun(`${path} cannot be continued, line ${number}: ${next}; name another file`);
    existing = next;
    onRead(end, existing.end.events);
  }
  return existing;
}

/** Returns a text if the line is invalid at this point: the reason. */
function withLine(existing: ExistingExport, line: ReadLine['line'], length: number): ExistingExport | string {
  // The run was killed while it wrote this line.
  if (line.kind === 'cut') return { ...existing, finished: false };
  if (line.kind === 'head') return { ...NO_EXPORT, head: line.head, length };
  if (existing.finished) return 'it follows the end line';
  if (line.kind === 'wrong') return line.problem;
  if (line.kind === 'end')
    return endLine(line.end) === endLine(existing.end)
      ? { ...existing, finished: true }
      : 'its counts differ from the lines before it';
  if (line.kind === 'damaged')
    return { ...existing, end: withDamage(existing.end, line.damage), length, hasDamage: true };
  const { event } = line;
  if (existing.last !== null && event.position <= existing.last.position) return 'it is out of order';
  return { ...existing, last: event, end: withEvent(existing.end, event), length };
}
