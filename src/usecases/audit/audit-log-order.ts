// Checks that the record is complete and in order: positions and revisions, regardless of the events' data.

import type { Fault } from '#src/domain/audit/finding.ts';
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { StreamStates } from './stream-states.ts';

export function auditOrder(states: StreamStates) {
  /** `head`: the greatest position so far. */
  const counts = { events: 0, streams: 0, head: null as string | null };

  function positionFault(position: string): Fault | null {
    const before = counts.head;
    if (before !== null && position <= before) {
      const message = `position ${position} follows ${before}`;
      return { kind: 'position_order', message };
    }
    counts.head = position;
    const missing = missingBefore(before, position);
    if (missing === 0) return null;
    return {
      kind: 'position_gap',
      message: `${missing === 1 ? '1 event is' : `${missing} events are`} missing right before this one`,
    };
  }

  /** `seen`: the stream has an event of this revision already; after a gap it may be the missing one. */
  function revisionFault({ stream, revision }: RecordedEvent): { fault: Fault; seen: boolean } | null {
    const at = Number(revision);
    const { next, gap } = states.advance(stream, at);
    if (next === 0) counts.streams++;
    if (at === next) return null;
    if (at > next) {
      const verb = at - next === 1 ? 'is' : 'are';
      const message = `revision ${next} was expected here: ${at - next} of the stream's events ${verb} missing before it`;
      return { fault: { kind: 'revision_gap', message }, seen: false };
    }
    const message = `the stream had reached revision ${next - 1} before`;
    return { fault: { kind: 'revision_repeated', message }, seen: gap === undefined };
  }

  return {
    counts: counts as Readonly<typeof counts>,
    /** `skip`: the stream has an event of this revision already, or no log can have such names. */
    take(event: RecordedEvent): { readonly faults: readonly Fault[]; readonly skip: boolean } {
      counts.events++;
      const { stream, id, position } = event;
      const faults: Fault[] = [];
      if ([stream, id, position].some(isNoName)) {
        faults.push({ kind: 'event_unreadable', message: 'no log has such a stream, id or position' });
      }
      const misordered = isNoName(position) ? null : positionFault(position);
      if (misordered !== null) faults.push(misordered);
      if (isNoName(stream) || isNoName(id)) return { faults, skip: true };
      const misnumbered = revisionFault(event);
      if (misnumbered !== null) faults.push(misnumbered.fault);
      return { faults, skip: misnumbered?.seen === true };
    },
  };
}

/** Half a surrogate pair or U+0000: databases and UTF-8 do not distinguish such names. */
const isNoName = (name: string): boolean =>
  !/^[!-~]+$/.test(name) && (name === '' || name.includes('\u0000') || hasLoneSurrogate(name));

/** How many events are missing before `position` in a log with consecutive positions (the embedded one); 0 for others. */
function missingBefore(before: string | null, position: string): number {
  const numbers = [before ?? '0', position].map((text) =>
    /^\d{1,20}$/.test(text) ? Number(text) : Number.NaN,
  );
  const [from = Number.NaN, to = Number.NaN] = numbers;
  return Number.isSafeInteger(to - from) ? Math.max(0, to - from - 1) : 0;
}
