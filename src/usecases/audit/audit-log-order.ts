// Checks that the record is complete and in order: positions and revisions, regardless of the events' data.

import { type Fault, fault } from '#src/domain/audit/finding.ts';
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import { type Damage, damagedCount } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { StreamStates } from './stream-states.ts';

export function auditOrder(states: StreamStates) {
  /** `head`: the greatest position so far. `damaged`: events that could not be read. */
  const counts = { events: 0, streams: 0, damaged: 0, head: null as string | null };

  function positionFault(position: string): Fault | null {
    const before = counts.head;
    if (before !== null && position <= before)
      return fault('position_order', `position ${position} follows ${before}`);
    counts.head = position;
    const missing = missingBefore(before, position);
    return missing === 0
      ? null
      : fault('position_gap', `events are missing right before this one: ${missing}`);
  }

  function revisionFault({ stream, revision }: RecordedEvent): Fault | null {
    const at = Number(revision);
    const next = states.advance(stream, at);
    if (next === 0) counts.streams++;
    if (at === next) return null;
    return at > next
      ? fault('revision_gap', `revision ${next} of the stream was expected here`)
      : fault('revision_repeated', `the stream had reached revision ${next - 1} before`);
  }

  return {
    counts: counts as Readonly<typeof counts>,
    /** `event_unreadable`: no log can have such a stream, so the event is not judged. */
    take(event: RecordedEvent): readonly Fault[] {
      counts.events++;
      const named = isNoName(event.stream) ? UNREADABLE : revisionFault(event);
      return [positionFault(event.position), named].filter((fault) => fault !== null);
    },
    /** Its position, and its revision where it is known, are not missing. */
    takeDamaged(damage: Damage): readonly Fault[] {
      const { from, to, stream, revision } = damage;
      counts.damaged += damagedCount(damage);
      const fault = positionFault(from);
      if (counts.head === null || to > counts.head) counts.head = to;
      if (stream !== null && states.advance(stream, Number(revision)) === 0) counts.streams++;
      return fault === null ? [] : [fault];
    },
  };
}

const UNREADABLE: Fault = fault('event_unreadable', 'no log has such a stream');

/** Half a surrogate pair or U+0000: databases and UTF-8 do not distinguish such names. */
const isNoName = (name: string): boolean =>
  !/^[!-~]+$/.test(name) && (name === '' || name.includes('\u0000') || hasLoneSurrogate(name));

/** How many events are missing before `position` in a log with consecutive positions (the embedded one); 0 for others. */
function missingBefore(before: string | null, position: string): number {
  const [from = Number.NaN, to = Number.NaN] = [before ?? '0', position].map((text) =>
    /^\d{1,20}$/.test(text) ? Number(text) : Number.NaN,
  );
  return Number.isSafeInteger(to - from) ? Math.max(0, to - from - 1) : 0;
}
