// The log in pages, read and judged ahead of who folds them: while the database writes one page, the next is made ready.
import type { EventLog } from '#src/ports/event-log.ts';
import { type JudgeReceipt, judgeEvents } from './batch.ts';
import type { JudgedEvent } from './fold.ts';
import { eventMark } from './last-event.ts';
import { RebuildFailed } from './rebuild-lock.ts';

export type JudgedPage = {
  readonly judged: readonly JudgedEvent[];
  /** Events read, also those that no model knows. */
  readonly read: number;
  /** Jobs whose start is among them. */
  readonly started: number;
  /** Id of the first, position and mark of the last of them. */
  readonly firstId: string;
  readonly position: string;
  readonly mark: string;
};

export type PageDeps = { readonly log: Pick<EventLog, 'readAll'>; readonly judgeReceipt: JudgeReceipt };

/** Signatures are checked beside each other: so many at a time. */
const BESIDE = 16;

/** Every event after `after` up to `until` (inclusive). Throws where the log ends before. */
export async function* judgedPages(
  deps: PageDeps,
  after: string | null,
  until: string,
  size: number,
): AsyncGenerator<JudgedPage, void, undefined> {
  if (after !== null && after >= until) return;
  const ahead = (from: string | null) => {
    const page = nextPage(deps, from, until, size);
    page.catch(() => undefined);
    return page;
  };
  for (let at = after, next = ahead(at); at === null || at < until; ) {
    const page = await next;
    at = page.position;
    if (at < until) next = ahead(at);
    yield page;
  }
}

async function nextPage(
  { log, judgeReceipt }: PageDeps,
  after: string | null,
  until: string,
  size: number,
): Promise<JudgedPage> {
  const recorded = (await log.readAll({ after, max: size })).filter(({ position }) => position <= until);
  const [first, last] = [recorded[0], recorded.at(-1)];
  if (first === undefined || last === undefined) {
    throw new RebuildFailed(`the event log ends before the position at which the rows stand (${until})`);
  }
  let before = after ?? '';
  for (const { position } of recorded) {
    if (position <= before) throw new RebuildFailed(`the event log is out of order at ${position}`);
    before = position;
  }
  const width = Math.ceil(recorded.length / BESIDE);
  const slices = Array.from({ length: BESIDE }, (_, n) => recorded.slice(n * width, (n + 1) * width));
  const judged = (await Promise.all(slices.map((slice) => judgeEvents(slice, judgeReceipt)))).flat();
  const started = judged.filter(({ event }) => event.type === 'JobStarted').length;
  const ends = { firstId: first.id, position: last.position, mark: eventMark(last) };
  return { judged, read: recorded.length, started, ...ends };
}
