// Whether the record is whole and in order: positions, event ids and revisions, whatever the events say.

import type { Fault } from '#src/domain/audit/finding.ts';
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

export type OrderAudit = {
  /** `doubled`: the very event was there before. `unnamed`: its names are none that any log can have. */
  take(event: RecordedEvent): { readonly faults: readonly Fault[]; readonly skip: boolean };
  readonly events: number;
  readonly streams: number;
  /** The greatest position so far. */
  readonly head: string | null;
};

export function auditOrder(scratch: AuditScratch): OrderAudit {
  /** The revision that comes next, by stream; the revision and stream of an event, by its id. */
  const nextOf = scratch.table<number>('revision');
  const ids = scratch.table<string>('event');
  const so = { events: 0, streams: 0, head: null as string | null };

  function positionFault(position: string): Fault | null {
    const before = so.head;
    if (before !== null && position <= before) {
      const message = `position ${position} follows ${before}`;
      return { kind: 'position_order', message };
    }
    so.head = position;
    const missing = missingBefore(before, position);
    if (missing === 0) return null;
    return { kind: 'position_gap', message: `${missing} events are missing right before this one` };
  }

  function revisionFault({ stream, revision }: RecordedEvent): Fault | null {
    const at = Number(revision);
    const expected = nextOf.get(stream);
    if (expected === null) so.streams++;
    const next = expected ?? 0;
    if (at >= next) nextOf.put(stream, at + 1);
    if (at === next) return null;
    if (at > next) {
      const message = `revision ${next} was expected here: ${at - next} of the stream's events are missing before it`;
      return { kind: 'revision_gap', message };
    }
    return { kind: 'revision_repeated', message: `the stream has come to revision ${next - 1} before` };
  }

  return {
    take(event) {
      so.events++;
      const { stream, revision, id, position } = event;
      const faults: Fault[] = [];
      if ([stream, id, position].some(isNoName)) {
        faults.push({ kind: 'event_unreadable', message: 'no log has such a stream, id or position' });
      }
      const astray = isNoName(position) ? null : positionFault(position);
      if (astray !== null) faults.push(astray);
      if (isNoName(stream) || isNoName(id)) return { faults, skip: true };
      const here = `${stream} ${revision}`;
      const before = ids.get(id);
      if (before === null) ids.put(id, here);
      else faults.push({ kind: 'event_id_repeated', message: `its id is that of revision ${before}` });
      const misnumbered = revisionFault(event);
      if (misnumbered !== null) faults.push(misnumbered);
      return { faults, skip: before === here };
    },
    get events() {
      return so.events;
    },
    get streams() {
      return so.streams;
    },
    get head() {
      return so.head;
    },
  };
}

/** Half a surrogate pair or U+0000: neither a database nor UTF-8 distinguishes such names. */
const isNoName = (name: string): boolean => name === '' || name.includes('\u0000') || hasLoneSurrogate(name);

/**
 * Events that a log which numbers them 1, 2, 3 (the embedded one) has lost before `position`; 0 where its positions are
 * of another kind.
 */
function missingBefore(before: string | null, position: string): number {
  const numbers = [before ?? '0', position].map((text) =>
    /^\d{1,20}$/.test(text) ? Number(text) : Number.NaN,
  );
  const [from = Number.NaN, to = Number.NaN] = numbers;
  return Number.isSafeInteger(to - from) ? Math.max(0, to - from - 1) : 0;
}
