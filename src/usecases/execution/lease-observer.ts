// Watching, not comparing: how long this process has itself seen a stream unchanged, on its own monotonic clock.
import type { Clock } from '#src/ports/clock.ts';

export type StreamWatch = {
  /** Ms since this watch first saw the stream at this revision; 0 at first sight and after every change. */
  unchangedFor(stream: string, revision: string): number;
  /** Forgets all: what was not watched meanwhile may have changed and changed back. */
  reset(): void;
  /** Forgets the streams that are not in the list. */
  keepOnly(streams: ReadonlySet<string>): void;
};

/** `limit`: the oldest entries are forgotten beyond it, which only makes their watch start anew. */
export function streamWatch(clock: Pick<Clock, 'monotonic'>, limit = 10_000): StreamWatch {
  const seen = new Map<string, { readonly revision: string; readonly since: number }>();
  return {
    unchangedFor(stream, revision) {
      const now = clock.monotonic();
      const entry = seen.get(stream);
      if (entry?.revision === revision) return now - entry.since;
      seen.delete(stream);
      seen.set(stream, { revision, since: now });
      if (seen.size > limit) for (const oldest of seen.keys()) return forget(oldest);
      return 0;
    },
    reset: () => seen.clear(),
    keepOnly(streams) {
      for (const stream of seen.keys()) if (!streams.has(stream)) seen.delete(stream);
    },
  };

  function forget(stream: string): number {
    seen.delete(stream);
    return 0;
  }
}
