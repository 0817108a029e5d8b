// Checks that an event log is stored as it was written, whatever it says: each event against its checksum and in its stream,
// positions and revisions without gaps, and the files by the storage engine's own check.
import {
  damageFinding,
  type Fault,
  type Finding,
  fault,
  findingOf,
  locationOf,
  NOWHERE,
} from '#src/domain/audit/finding.ts';
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import { type Damage, damagedCount, shortPosition } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { pagesOf } from './export-log.ts';
import { type ScratchRow, type StreamStates, streamStates } from './stream-states.ts';

export type IntegrityDeps = {
  readonly log: EventScan;
  /** The caller closes it. */
  readonly scratch: AuditScratch<ScratchRow>;
  readonly onFinding: (finding: Finding) => void;
  /** `position`: as far as the log was read; null: not begun. */
  readonly onProgress?: (events: number, position: string | null, head: string | null) => void;
  /** The events are read; the files follow. */
  readonly onEventsRead?: () => void;
};

export type Integrity = {
  readonly events: number;
  readonly streams: number;
  readonly damaged: number;
  /** Events of an older release, stored without a checksum. */
  readonly unchecked: number;
  readonly head: string | null;
  /** false: the storage engine checks its own files. */
  readonly filesChecked: boolean;
  readonly findings: number;
};

export async function integrityOf(deps: IntegrityDeps): Promise<Integrity> {
  const { log, onProgress } = deps;
  const order = auditOrder(streamStates(deps.scratch));
  let [findings, unchecked]: [number, number] = [0, 0];
  const found = (finding: Finding) => {
    findings++;
    deps.onFinding(finding);
  };
  const head = await log.lastPosition();
  onProgress?.(0, null, head);
  for await (const page of pagesOf(log, null, head, true)) {
    for (const scanned of page.found) {
      const isEvent = scanned.kind === 'event';
      const {
        kind: _,
        message: __,
        ...location
      } = isEvent
        ? { kind: null, message: null, ...locationOf(scanned.event) }
        : damageFinding(scanned.damage);
      const faults = isEvent ? order.take(scanned.event) : order.takeDamaged(scanned.damage);
      for (const each of faults) found(findingOf(each, location));
      if (!isEvent) found(damageFinding(scanned.damage));
    }
    for (const event of page.unindexed) found(findingOf(unindexed(event.stream), locationOf(event)));
    unchecked += page.unchecked;
    onProgress?.(order.counts.events, page.next ?? head, head);
  }
  deps.onEventsRead?.();
  const problems = await log.checkFiles();
  for (const problem of problems ?? [])
    found(
      findingOf(
        fault('storage_damaged', `The storage engine reports: ${problem.replace(/\.$/, '')}.`),
        NOWHERE,
      ),
    );
  return { ...order.counts, unchecked, filesChecked: problems !== null, findings };
}

const unindexed = (stream: string): Fault =>
  fault(
    'event_unindexed',
    `Reads of ${stream} do not find the event: calls that it answered could be sent again.`,
  );

// ── whether the record is complete and in order, whatever its events say ────────────────────────────

/** `head`: the greatest position so far. `damaged`: events that could not be read. */
export type OrderCounts = {
  readonly events: number;
  readonly streams: number;
  readonly damaged: number;
  readonly head: string | null;
};

const NO_COUNTS: OrderCounts = { events: 0, streams: 0, damaged: 0, head: null };

export function auditOrder(states: StreamStates, from = NO_COUNTS) {
  const counts: { -readonly [K in keyof OrderCounts]: OrderCounts[K] } = { ...from };

  function positionFault(position: string): Fault | null {
    const before = counts.head;
    if (before !== null && position <= before)
      return fault(
        'position_order',
        `Position ${shortPosition(position)} follows position ${shortPosition(before)}.`,
      );
    counts.head = position;
    const missing = missingBefore(before, position);
    return missing === 0
      ? null
      : fault(
          'position_gap',
          `${missing === 1 ? 'One event is' : `${missing} events are`} missing before position ${shortPosition(position)}.`,
        );
  }

  function revisionFault({ stream, revision }: RecordedEvent): Fault | null {
    const at = Number(revision);
    const next = states.advance(stream, at);
    if (next === 0) counts.streams++;
    if (at === next) return null;
    return at > next
      ? fault('revision_gap', `Revision ${at} of ${stream} is recorded where revision ${next} was expected.`)
      : fault('revision_repeated', `Revision ${at} of ${stream} is recorded after its revision ${next - 1}.`);
  }

  return {
    counts: counts as OrderCounts,
    /** `event_unreadable`: no log can have such a stream, so the event is not judged. */
    take(event: RecordedEvent): readonly Fault[] {
      counts.events++;
      const named = isNoName(event.stream) ? UNREADABLE : revisionFault(event);
      return [positionFault(event.position), named].filter((found) => found !== null);
    },
    /** Its position, and its revision where it is known, are not missing. */
    takeDamaged(damage: Damage): readonly Fault[] {
      const { from, to, stream, revision } = damage;
      counts.damaged += damagedCount(damage);
      const found = positionFault(from);
      if (counts.head === null || to > counts.head) counts.head = to;
      if (stream !== null && states.advance(stream, Number(revision)) === 0) counts.streams++;
      return found === null ? [] : [found];
    },
  };
}

const UNREADABLE: Fault = fault('event_unreadable', 'No event log has a stream of this name.');

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
