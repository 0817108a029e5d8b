// relay export: writes the event log to a file that anyone can audit. The file is written as FILE.part, flushed to the
// disk and renamed: a file under its own name is complete. A run that was interrupted continues FILE.part, a later run
// continues FILE with the newer events.

import {
  closeSync,
  copyFileSync,
  createReadStream,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { systemCode } from '#src/lib/system-error.ts';
import { containsEvent, pagesOf, receiptLogOrigin } from '#src/usecases/audit/export-log.ts';
import {
  damageLine,
  type ExportEnd,
  endLine,
  eventLine,
  headLine,
  withDamage,
  withEvent,
} from '../domain/audit/export-format.ts';
import { damageFinding } from '../domain/audit/finding.ts';
import { type Damage, damagedCount } from '../domain/damage.ts';
import type { EventScan, Scanned, ScannedLog } from '../ports/event-scan.ts';
import { findingTable } from './audit-report.ts';
import { CannotRun, EXIT } from './exit.ts';
import { type ExistingExport, NO_EXPORT, readExisting } from './export-file.ts';
import { shareOf, withLog } from './operator.ts';
import { mark, numbered, type Print, plain, printer, printJson, showProgress } from './terminal.ts';

type Options = { readonly out: string; readonly json?: true };

const HELP = `
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it. Events that arrive meanwhile may be
missing: run it again with the same file to add them. A file that is not an export is never overwritten.
The file contains no secret: targets and bodies are in it as salted commitments only. It shows who paid, and how much.
Audit it with: relay audit --events FILE
Damaged events are left out, each named by a line with "damaged": true in its place; relay audit reports these. Run it again
after a backup was put back: such a file is written again from its first event.
Exit status: 0 exported, 1 exported without damaged events, 2 not exported.`;

export function addExport(program: Command): void {
  program
    .command('export')
    .description('Export the event log as NDJSON that anyone can audit.')
    .requiredOption('--out <file>', 'the file')
    .option('--json', 'print the result as JSON; progress goes to standard error')
    .addHelpText('after', HELP)
    .action(exportLog);
}

async function exportLog({ out, json }: Options): Promise<void> {
  const write = printer(json === true);
  const exported = await withLog(({ log }) => intoFile(log, out, write));
  if (exported.damagedEvents > 0) process.exitCode = EXIT.foundWrong;
  if (json) return printJson(exported);
  const { file, events, streams, added, damaged, damagedEvents } = exported;
  const before = added === events ? '' : `, ${added} of them new`;
  write(`Exported ${events} events of ${streams} streams to ${plain(file)}${before}.`);
  if (damagedEvents === 0) return;
  write(
    `${mark(false)} ${numbered(damagedEvents, 'event')} cannot be read as written, and lines in the file name them:`,
  );
  const findings = findingTable();
  for (const damage of damaged) findings.add(damageFinding(damage));
  for (const line of findings.lines()) write(line);
}

/** Kept for the report; the file has all. */
const DAMAGE_KEPT = 1000;

/** `added`: events that this run has written. */
async function intoFile(log: ScannedLog, path: string, write: Print) {
  const target = targetOf(path);
  const part = `${target}.part`;
  const { lockExport } = await import('#src/app/operator.ts');
  const lock = asFault(path, () => lockExport(target));
  if (lock === null)
    throw new CannotRun(`${path} is being written by another relay export: wait until it has ended`);
  try {
    const head = await log.lastPosition();
    const origin = await receiptLogOrigin(log, head);
    const source = existsSync(part) || !existsSync(target) ? part : target;
    const found = await readFound(source, write);
    if (found.last !== null && !(await containsEvent(log, found.last)))
      throw new CannotRun(`${source} is an export of another log: it is unchanged; name another file`);
    // The first line contains the origin: an export from before the transparency log is written again, once.
    // So is one that lacks damaged events: they may have been put back.
    const existing = found.head?.origin === origin && !found.hasDamage ? found : NO_EXPORT;
    const damage = { damagedEvents: 0, damaged: [] as Damage[] };
    const onDamage = (event: Damage) => {
      damage.damagedEvents += damagedCount(event);
      if (damage.damaged.length < DAMAGE_KEPT) damage.damaged.push(event);
    };
    const isComplete = source === target && existing.finished && head === existing.end.head;
    const events = existing.end.events;
    if (isComplete) return { file: path, origin, ...existing.end, added: 0, ...damage };
    if (source !== part) asFault(path, () => copyFileSync(source, part));
    const append = appendTo(path, part, existing.length);
    try {
      if (existing.length === 0) append.text(`${headLine({ origin, from: null })}\n`);
      const end = await copyEvents(log, existing.end, head, { write, onDamage, append: append.text });
      append.text(`${endLine(end)}\n`);
      append.flush();
      asFault(path, () => renameSync(part, target));
      return { file: path, origin, ...end, added: end.events - events, ...damage };
    } finally {
      append.close();
    }
  } finally {
    lock.release();
  }
}

/** Continues the file after so many bytes. */
function appendTo(path: string, part: string, length: number) {
  const file = asFault(path, () => openSync(part, 'a', 0o600));
  asFault(path, () => ftruncateSync(file, length));
  return {
    text: (text: string) => asFault(path, () => writeFileSync(file, text)),
    flush: () => asFault(path, () => fsyncSync(file)),
    close: () => closeSync(file),
  };
}

type Copying = {
  readonly write: Print;
  readonly onDamage: (damage: Damage) => void;
  readonly append: (text: string) => void;
};

/** Appends the events after `from` up to `head`; returns what the end line states. */
async function copyEvents(
  log: EventScan,
  from: ExportEnd,
  head: string | null,
  { write, onDamage, append }: Copying,
): Promise<ExportEnd> {
  const progress = showProgress('exporting', write);
  let end = from;
  const show = () => {
    const { events } = end;
    progress.show({ events, eventsHere: events - from.events, share: shareOf(end.head, head) });
  };
  try {
    show();
    for await (const { found } of pagesOf(log, from.head, head)) {
      for (const scanned of found) {
        end = scanned.kind === 'event' ? withEvent(end, scanned.event) : withDamage(end, scanned.damage);
        if (scanned.kind === 'damaged') onDamage(scanned.damage);
      }
      append(found.map(lineOf).join(''));
      show();
    }
    return end;
  } finally {
    progress.end();
  }
}

const lineOf = (scanned: Scanned): string =>
  `${scanned.kind === 'event' ? eventLine(scanned.event) : damageLine(scanned.damage)}\n`;

/** Resolves a symbolic link, because a rename would replace the link. Throws `CannotRun` if the path cannot be a file. */
function targetOf(path: string): string {
  const found = asFault(path, () => statSync(path, { throwIfNoEntry: false }));
  if (found !== undefined && !found.isFile()) throw new CannotRun(`${path} is not a file: name one`);
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
