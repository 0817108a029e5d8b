// relay export: the whole log as a file that anyone can audit. A run that was killed goes on where it was, and a file
// that is finished is continued with what has come since.
import type { Command } from 'commander';
import { holds, pagesOf, receiptLogOrigin } from '#src/usecases/audit/export-log.ts';
import { readLogConfig } from '../config.ts';
import {
  type ExportEnd,
  endLine,
  eventLine,
  headLine,
  NO_EVENTS,
  withEvent,
} from '../domain/audit/export-format.ts';
import type { EventLog, RecordedEvent } from '../ports/event-log.ts';
import { CannotRun, type End, EXIT } from './exit.ts';
import { type ExportFile, openExportFile } from './export-file.ts';
import { type Begun, readBegun } from './export-resume.ts';
import { shareOf } from './log-progress.ts';
import { showProgress } from './rebuild-progress.ts';
import { plain, print, printJson, printWhole } from './terminal.ts';

type Options = { readonly out: string; readonly json?: true };

const HELP = `
The log of DATA_DIR, or of EVENTSTORE_URL, is read, also while a service runs on it. Events that come meanwhile may be
missing: run it again with the same file, and it goes on with them. A file that is no export is never overwritten.
The file holds no secret: targets and bodies are in it as salted commitments only. It does say who paid, and how much.
Audit it with: relay audit --events FILE`;

export function addExport(program: Command, end: End): void {
  program
    .command('export')
    .description('the log as a file (NDJSON) that anyone can audit')
    .requiredOption('--out <file>', 'where to; - for standard output')
    .option('--json', 'for machines: one object; progress goes to standard error')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      await exportLog(options);
      end(EXIT.good);
    });
}

async function exportLog({ out, json }: Options): Promise<void> {
  const toPipe = out === '-';
  if (toPipe && json) throw new CannotRun('--out - and --json both need standard output: name a file');
  const config = readLogConfig();
  const { openOperatorLog } = await import('#src/app/operator-log.ts');
  const { log } = await openOperatorLog(config);
  const write = json || toPipe ? (line: string) => void process.stderr.write(`${line}\n`) : print;
  try {
    const told = toPipe ? await intoPipe(log, write) : await intoFile(log, out, write);
    if (json) printJson(told);
    else write(sentence(told));
  } finally {
    await log.close();
  }
}

/** Where progress and the last word go. */
type Write = (line: string) => void;

type Told = {
  /** null: standard output. */
  readonly file: string | null;
  readonly origin: string | null;
  readonly events: number;
  readonly streams: number;
  readonly head: string | null;
  /** Events that this run has written. */
  readonly added: number;
};

function sentence({ file, events, streams, added }: Told): string {
  const to = file === null ? 'standard output' : plain(file);
  const before = added === events ? '' : `, ${added} of them new`;
  return `Exported ${events} events of ${streams} streams to ${to}${before}.`;
}

async function intoPipe(log: EventLog, write: Write): Promise<Told> {
  const origin = await receiptLogOrigin(log);
  const count = counter(null);
  await printWhole(`${headLine({ origin, from: null })}\n`);
  for await (const page of counted(log, count, write)) await printWhole(textOf(page));
  await printWhole(`${endLine(count.end())}\n`);
  return { file: null, origin, ...count.end(), added: count.added() };
}

const textOf = (page: readonly RecordedEvent[]): string =>
  page.map((event) => `${eventLine(event)}\n`).join('');

async function intoFile(log: EventLog, path: string, write: Write): Promise<Told> {
  const origin = await receiptLogOrigin(log);
  const file = openExportFile(path);
  try {
    const found = await readFound(path, file, write);
    await demandSameLog(log, path, found, origin);
    // The head tells the origin: a file of before the transparency log is written anew, once.
    const begun = found.head?.origin === origin ? found : null;
    const count = counter(begun);
    let touched = false;
    const put = (text: string) => {
      if (!touched) {
        file.keep(begun?.length ?? 0);
        if (begun === null) file.write(`${headLine({ origin, from: null })}\n`);
        touched = true;
      }
      file.write(text);
    };
    for await (const page of counted(log, count, write)) put(textOf(page));
    if (touched || begun?.finished !== true) {
      put('');
      file.finish(`${endLine(count.end())}\n`);
    }
    return { file: path, origin, ...count.end(), added: count.added() };
  } finally {
    file.close();
  }
}

async function readFound(path: string, file: ExportFile, write: Write): Promise<Begun> {
  const progress = showProgress('checking what is there', process.stderr, write);
  try {
    progress.show({ events: 0, eventsHere: 0, share: 0 });
    return await readBegun(path, file.chunks(), (bytes, events) =>
      progress.show({ events, eventsHere: events, share: bytes / file.size }),
    );
  } finally {
    progress.end();
  }
}

async function demandSameLog(
  log: EventLog,
  path: string,
  { head, first, last }: Begun,
  origin: string | null,
): Promise<void> {
  if (head === null) return;
  if (head.from !== null)
    throw new CannotRun(`${path} is an export that begins in the middle of a log: name another file`);
  const [beginning] = await log.readAll({ after: null, max: 1 });
  const same =
    (head.origin === null || head.origin === origin) &&
    (first === null || (beginning?.id === first.id && beginning.position === first.position)) &&
    (last === null || (await holds(log, last)));
  if (!same)
    throw new CannotRun(`${path} is an export of another log: it is left as it is; name another file`);
}

type Counter = {
  add(page: readonly RecordedEvent[]): void;
  end(): ExportEnd;
  added(): number;
};

function counter(begun: Begun | null): Counter {
  let end = begun?.end ?? NO_EVENTS;
  const before = end.events;
  return {
    add(page) {
      end = page.reduce(withEvent, end);
    },
    end: () => end,
    added: () => end.events - before,
  };
}

async function* counted(log: EventLog, count: Counter, write: Write) {
  const progress = showProgress('exporting', process.stderr, write);
  let until: string | null = null;
  const show = () => {
    const { events, head } = count.end();
    progress.show({ events, eventsHere: count.added(), share: shareOf(head, until) });
  };
  try {
    const pages = pagesOf(log, count.end().head, (head) => {
      until = head;
      show();
    });
    for await (const page of pages) {
      count.add(page);
      yield page;
      show();
    }
  } finally {
    progress.end();
  }
}
