// Leases are observed, not compared: how long this process has itself seen a stream unchanged, on its own monotonic clock.
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Place } from './stream.ts';

export type StreamWatch = {
  /** ms since the stream was first observed at this revision; 0 at first sight and after every change. */
  unchangedFor(place: Place): number;
  /** Forgets all streams: they may have changed while they were not observed. */
  reset(): void;
  /** Forgets the streams that are not in the list. */
  keepOnly(streams: ReadonlySet<string>): void;
};

/** `limit`: beyond it the oldest entries are forgotten, which only starts their observation again. */
export function streamWatch(clock: Pick<Clock, 'monotonic'>, limit = 10_000): StreamWatch {
  const seen = new Map<string, { readonly expected: Place['expected']; readonly since: number }>();
  return {
    unchangedFor({ stream, expected }) {
      const now = clock.monotonic();
      const entry = seen.get(stream);
      if (entry?.expected === expected) return now - entry.since;
      seen.delete(stream);
      seen.set(stream, { expected, since: now });
      if (seen.size > limit) deleteOldest(seen);
      return 0;
    },
    reset: () => seen.clear(),
    keepOnly(streams) {
      for (const stream of seen.keys()) if (!streams.has(stream)) seen.delete(stream);
    },
  };
}
