// How far a rebuild is: a bar on a terminal, a line now and then elsewhere. All of it goes to standard error where the
// output is for machines.
import { SingleBar } from 'cli-progress';
import type { RebuildProgress } from '#projections/rebuild.ts';

export type ShownProgress = { show(progress: RebuildProgress): void; end(): void };

export type Pace = {
  readonly perSecond: number;
  /** null: cannot be told. */
  readonly percent: number | null;
  readonly secondsLeft: number | null;
};

const LINE_EVERY_MS = 5000;

/** `elapsedMs`: since this run told its first progress, whose share was `shareAtFirst`. */
export function paceOf(
  { eventsHere, share }: RebuildProgress,
  shareAtFirst: number | null,
  elapsedMs: number,
): Pace {
  const seconds = Math.max(0.001, elapsedMs / 1000);
  const done = share === null || shareAtFirst === null ? 0 : share - shareAtFirst;
  return {
    perSecond: Math.round(eventsHere / seconds),
    // The last bit, the verification and the swap have no events to count.
    percent: share === null ? null : Math.min(99, Math.floor(share * 100)),
    secondsLeft: share === null || done <= 0 ? null : Math.round((seconds * (1 - share)) / done),
  };
}

export function progressLine({ events }: RebuildProgress, { perSecond, percent, secondsLeft }: Pace): string {
  const parts = [`${events} events`, `${perSecond} events/s`];
  if (percent !== null) parts.push(`${percent} %`);
  if (secondsLeft !== null) parts.push(`about ${secondsLeft} s left`);
  return parts.join(', ');
}

/** `write`: a line of plain text; where `terminal` is one, a bar is drawn there instead. */
export function showProgress(
  word: string,
  terminal: NodeJS.WriteStream,
  write: (line: string) => void,
  now: () => number = () => performance.now(),
): ShownProgress {
  const bar = terminal.isTTY ? newBar(word, terminal) : null;
  let first: { readonly at: number; readonly share: number | null } | null = null;
  let toldAt = 0;
  return {
    show(progress) {
      const at = now();
      const begun = first === null;
      first ??= { at, share: progress.share };
      const pace = paceOf(progress, first.share, at - first.at);
      if (bar !== null) {
        const words = { line: progressLine(progress, pace) };
        if (begun) bar.start(100, pace.percent ?? 0, words);
        else bar.update(pace.percent ?? 0, words);
      } else if (begun) {
        if (progress.events > 0) write(`${word}: going on after ${progress.events} events`);
        toldAt = at;
      } else if (at - toldAt >= LINE_EVERY_MS) {
        write(`${word}: ${progressLine(progress, pace)}`);
        toldAt = at;
      }
    },
    end: () => bar?.stop(),
  };
}

function newBar(word: string, stream: NodeJS.WriteStream): SingleBar {
  return new SingleBar({
    format: `${word} {bar} {line}`,
    stream,
    clearOnComplete: true,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
  });
}
