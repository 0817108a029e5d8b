// Checks that an event log is stored as it was written, whatever it says: each event against its checksum and in its stream,
// positions and revisions without gaps, and the files by the storage engine's own check.

import { damageFinding, type Finding, findingOf, locationOf, NOWHERE } from '#src/domain/audit/finding.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { auditOrder } from './audit-log-order.ts';
import { pagesOf } from './export-log.ts';
import { type ScratchRow, streamStates } from './stream-states.ts';

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
  /** Events that could be read. */
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
    for (const one of page.found) {
      const isEvent = one.kind === 'event';
      const {
        kind: _,
        message: __,
        ...location
      } = isEvent ? { kind: null, message: null, ...locationOf(one.event) } : damageFinding(one.damage);
      const faults = isEvent ? order.take(one.event) : order.takeDamaged(one.damage);
      for (const fault of faults) found(findingOf(fault, location));
      if (!isEvent) found(damageFinding(one.damage));
    }
    for (const event of page.unindexed) found(findingOf(UNINDEXED, locationOf(event)));
    unchecked += page.unchecked;
    onProgress?.(order.counts.events, page.next ?? head, head);
  }
  deps.onEventsRead?.();
  const problems = await log.checkFiles();
  for (const problem of problems ?? [])
    found(findingOf({ kind: 'storage_damaged', message: problem.replace(/\.$/, '') }, NOWHERE));
  return { ...order.counts, unchecked, filesChecked: problems !== null, findings };
}

const UNINDEXED = {
  kind: 'event_unindexed',
  message: 'reads of its stream do not find the event: calls that it answered could be sent again',
} as const;
