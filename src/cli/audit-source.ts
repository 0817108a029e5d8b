// Where an audit's events come from, and how far it is.
import { createReadStream, statSync } from 'node:fs';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import { readLogConfig } from '../config.ts';
import type { Finding } from '../domain/audit/finding.ts';
import type { RecordedEvent } from '../ports/event-log.ts';
import { eventsOfExport } from './audit-export.ts';
import { shareOf } from './log-progress.ts';
import { nameOf, unreadable } from './read-source.ts';
import { showProgress } from './rebuild-progress.ts';

export type AuditSource = {
  /** As the reader of the findings knows it. */
  readonly name: string;
  /** In global order from the first on. Throws what says why they cannot be read. */
  readonly events: AsyncIterable<RecordedEvent>;
};
type Found = (finding: Finding) => void;
type Write = (line: string) => void;

/** `file`: an export, `-` for standard input; undefined: the configured log. `write`: for progress off a terminal. */
export const sourceOf = (file: string | undefined, found: Found, write: Write): AuditSource =>
  file === undefined
    ? { name: 'the log', events: eventsOfLog(write) }
    : { name: nameOf(file), events: eventsOfFile(file, found, write) };

async function* eventsOfLog(write: Write): AsyncGenerator<RecordedEvent, void, undefined> {
  const config = readLogConfig();
  const { openOperatorLog } = await import('#src/app/operator-log.ts');
  const { log } = await openOperatorLog(config);
  const progress = showProgress('auditing', process.stderr, write);
  try {
    let [events, until]: [number, string | null] = [0, null];
    const show = (position: string | null) =>
      progress.show({ events, eventsHere: events, share: shareOf(position, until) });
    const pages = pagesOf(log, null, (head) => {
      until = head;
    });
    for await (const page of pages) {
      if (events === 0) show(null);
      yield* page;
      events += page.length;
      show(page.at(-1)?.position ?? null);
    }
  } finally {
    progress.end();
    await log.close();
  }
}

/** Lines between two looks at the clock. */
const SHOW_EVERY = 512;

async function* eventsOfFile(
  source: string,
  found: Found,
  write: Write,
): AsyncGenerator<RecordedEvent, void, undefined> {
  const progress = showProgress('auditing', process.stderr, write);
  try {
    const size = source === '-' ? null : sizeOf(source);
    const chunks = source === '-' ? process.stdin : createReadStream(source, { highWaterMark: 256 * 1024 });
    let [events, bytes] = [0, 0];
    const show = () => progress.show({ events, eventsHere: events, share: size && bytes / size });
    show();
    const lines = eventsOfExport(source, readable(source, chunks), found, (read) => {
      bytes = read;
    });
    for await (const event of lines) {
      yield event;
      events++;
      if (events % SHOW_EVERY === 0) show();
    }
  } finally {
    progress.end();
  }
}

function sizeOf(source: string): number | null {
  try {
    const found = statSync(source);
    return found.isFile() && found.size > 0 ? found.size : null;
  } catch (error) {
    throw unreadable(source, error);
  }
}

async function* readable(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunks;
  } catch (error) {
    throw unreadable(source, error);
  }
}
