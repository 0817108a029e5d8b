// relay export: writes the event log to a file that anyone can audit. The file is written as FILE.part, flushed to the
// disk and renamed: a file under its own name is complete. A run that was interrupted continues FILE.part, a later run
// continues FILE with the newer events.
import {
  closeSync,
  constants,
  copyFileSync,
  createReadStream,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { containsEvent, pagesOf, receiptLogOrigin } from '#src/usecases/audit/export-log.ts';
import { endLine, eventLine, headLine, withEvent } from '../domain/audit/export-format.ts';
import type { EventLog, RecordedEvent } from '../ports/event-log.ts';
import { CannotRun, systemCode } from './exit.ts';
import { type ExistingExport, NO_EXPORT, readExisting } from './export-file.ts';
import { shareOf, withLog } from './operator.ts';
import { type Print, plain, printer, printJson, printWhole, showProgress } from './terminal.ts';

type Options = { readonly out: string; readonly json?: true };

const HELP = `
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it. Events that arrive meanwhile may be
missing: run it again with the same file to add them. A file that is not an export is never overwritten.
The file contains no secret: targets and bodies are in it as salted commitments only. It shows who paid, and how much.
Audit it with: relay audit --events FILE`;

export function addExport(program: Command): void {
  program
    .command('export')
    .description('Export the event log as NDJSON that anyone can audit.')
    .requiredOption('--out <file>', 'the file; - for standard output')
    .option('--json', 'print the result as JSON; progress goes to standard error')
    .addHelpText('after', HELP)
    .action(exportLog);
}

async function exportLog({ out, json }: Options): Promise<void> {
  const toPipe = out === '-';
  if (toPipe && json) throw new CannotRun('--out - and --json both need standard output: name a file');
  const write = printer(toPipe || json === true);
  const exported = await withLog(({ log }) => (toPipe ? intoPipe(log, write) : intoFile(log, out, write)));
  if (json) printJson(exported);
  else write(summaryOf(exported));
}

type Exported = {
  /** null: standard output. */
  readonly file: string | null;
  readonly origin: string | null;
  readonly events: number;
  readonly streams: number;
  readonly head: string | null;
  /** Events that this run has written. */
  readonly added: number;
};

function summaryOf({ file, events, streams, added }: Exported): string {
  const to = file === null ? 'standard output' : plain(file);
  const before = added === events ? '' : `, ${added} of them new`;
  return `Exported ${events} events of ${streams} streams to ${to}${before}.`;
}

async function intoPipe(log: EventLog, write: Print): Promise<Exported> {
  const origin = await receiptLogOrigin(log);
  await printWhole(`${headLine({ origin, from: null })}\n`);
  const end = await copyEvents(log, NO_EXPORT, write, (page) => printWhole(textOf(page)));
  await printWhole(`${endLine(end)}\n`);
  return { file: null, origin, ...end, added: end.events };
}

const textOf = (page: readonly RecordedEvent[]): string =>
  page.map((event) => `${eventLine(event)}\n`).join('');

/** Calls `put` with each page of events after `existing`; returns what the end line states. */
async function copyEvents(
  log: EventLog,
  existing: ExistingExport,
  write: Print,
  put: (page: readonly RecordedEvent[]) => Promise<void> | void,
): Promise<ExistingExport['end']> {
  const progress = showProgress('exporting', write);
  let { end } = existing;
  let until: string | null = null;
  const show = () =>
    progress.show({
      events: end.events,
      eventsHere: end.events - existing.end.events,
      share: shareOf(end.head, until),
    });
  try {
    const pages = pagesOf(log, end.head, (head) => {
      until = head;
      show();
    });
    for await (const page of pages) {
      end = page.reduce(withEvent, end);
      await put(page);
      show();
    }
    return end;
  } finally {
    progress.end();
  }
}

async function intoFile(log: EventLog, path: string, write: Print): Promise<Exported> {
  const target = targetOf(path);
  const part = `${target}.part`;
  const { lockExport } = await import('#src/app/operator.ts');
  const lock = asFault(path, () => lockExport(target));
  if (lock === null)
    throw new CannotRun(`${path} is being written by another relay export: wait until it has ended`);
  let file: number | null = null;
  try {
    const origin = await receiptLogOrigin(log);
    const source = existsSync(part) || !existsSync(target) ? part : target;
    const found = await readFound(source, write);
    await requireSameLog(log, source, found, origin);
    // The first line contains the origin: an export from before the transparency log is written again, once.
    const existing = found.head?.origin === origin ? found : NO_EXPORT;
    const open = () => {
      if (source === target) asFault(path, () => copyFileSync(target, part));
      file = asFault(path, () => openSync(part, constants.O_RDWR | constants.O_CREAT, 0o600));
      asFault(path, () => ftruncateSync(file ?? 0, existing.length));
      const writer = appender(path, file, existing.length);
      if (existing.length === 0) writer(`${headLine({ origin, from: null })}\n`);
      return writer;
    };
    let append: ((text: string) => void) | null = null;
    const end = await copyEvents(log, existing, write, (page) => {
      append ??= open();
      append(textOf(page));
    });
    if (append !== null || source === part || !existing.finished) {
      append ??= open();
      append(`${endLine(end)}\n`);
      asFault(path, () => fsyncSync(file ?? 0));
      asFault(path, () => renameSync(part, target));
    }
    return { file: path, origin, ...end, added: end.events - existing.end.events };
  } finally {
    if (file !== null) closeSync(file);
    lock.release();
  }
}

/** Resolves a symbolic link, because a rename would replace the link. Throws `CannotRun` if the path cannot be a file. */
function targetOf(path: string): string {
  const found = asFault(path, () => statSync(path, { throwIfNoEntry: false }));
  if (found?.isDirectory()) throw new CannotRun(`${path} is a folder: name a file, or - for standard output`);
  if (found !== undefined && !found.isFile())
    throw new CannotRun(`${path} is not a file: name one, or - for standard output`);
  return found === undefined ? resolve(path) : realpathSync(path);
}

async function readFound(source: string, write: Print): Promise<ExistingExport> {
  if (!existsSync(source)) return NO_EXPORT;
  const { size } = statSync(source);
  const progress = showProgress('checking the existing export', write);
  try {
    progress.show({ events: 0, eventsHere: 0, share: 0 });
    const chunks = createReadStream(source, { highWaterMark: 256 * 1024 });
    return await readExisting(source, chunks, (bytes, events) =>
      progress.show({ events, eventsHere: events, share: bytes / size }),
    );
  } finally {
    progress.end();
  }
}

async function requireSameLog(
  log: EventLog,
  source: string,
  { head, first, last }: ExistingExport,
  origin: string | null,
): Promise<void> {
  if (head === null) return;
  if (head.from !== null)
    throw new CannotRun(`${source} is an export that begins in the middle of a log: name another file`);
  const [beginning] = await log.readAll({ after: null, max: 1 });
  const same =
    (head.origin === null || head.origin === origin) &&
    (first === null || (beginning?.id === first.id && beginning.position === first.position)) &&
    (last === null || (await containsEvent(log, last)));
  if (!same) throw new CannotRun(`${source} is an export of another log: it is unchanged; name another file`);
}

/** Writes at a known offset, after the part of the file that is kept. */
function appender(path: string, file: number, offset: number): (text: string) => void {
  let at = offset;
  return (text) => {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) {
      const written = asFault(path, () => writeSync(file, bytes, done, bytes.length - done, at));
      done += written;
      at += written;
    }
  };
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'is in a folder that does not exist',
  EACCES: 'cannot be written: permission denied',
  ENOSPC: 'cannot be written: the disk is full; free some space and run the command again, and it continues',
};

function asFault<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const code = systemCode(cause) ?? 'unknown';
    throw new CannotRun(`${path} ${PROBLEMS[code] ?? `cannot be written (${code})`}`, { cause });
  }
}
