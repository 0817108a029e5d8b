// An export as a tamperer handles it: events to change, a file that is whole again afterwards, and an audit of its text.

import { openAuditor } from '#src/app/operator.ts';
import { eventsOfExport } from '#src/cli/export-file.ts';
import { endLine, eventLine, headLine } from '#src/domain/audit/export-format.ts';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { KeptCheckpoint } from '#src/domain/audit/judge-checkpoint.ts';
import { utf8 } from '#src/domain/encoding.ts';
import { STREAM } from '#src/domain/events.ts';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type { AuditSummary } from '#src/usecases/audit/audit-log.ts';
import { ORIGIN } from './audit-history.ts';

export type Events = readonly RecordedEvent[];

/** The ids of the jobs, in the order of their starts. */
export const jobsIn = (events: Events): readonly string[] =>
  events.filter(({ type }) => type === 'JobStarted').map(({ data }) => String(data.jobId));

/** The events, one of them (or some) otherwise; it throws where there is none to change. */
export function changed(
  events: Events,
  which: (event: RecordedEvent) => boolean,
  change: (event: RecordedEvent) => RecordedEvent | readonly RecordedEvent[],
): Events {
  if (!events.some(which)) throw new Error('there is nothing to tamper with');
  return events.flatMap((event) => (which(event) ? change(event) : event));
}

export const isOf =
  (stream: string, type: string) =>
  (event: RecordedEvent): boolean =>
    event.stream === stream && event.type === type;

export const ofJob = (jobId: string, type: string) => isOf(STREAM.job(jobId), type);

export const without = (events: Events, which: (event: RecordedEvent) => boolean): Events =>
  changed(events, which, () => []);

/** As a careful tamperer leaves them: positions and revisions without a gap, each event in its place. */
export function renumbered(events: Events): Events {
  const next = new Map<string, bigint>();
  return events.map((event, at) => {
    const revision = next.get(event.stream) ?? 0n;
    next.set(event.stream, revision + 1n);
    return { ...event, revision, position: String(at + 1).padStart(20, '0') };
  });
}

/** A whole file: the end line counts what is there. */
export function exportOf(events: Events, origin: string | null = ORIGIN): string {
  const streams = events.filter(({ revision }) => revision === 0n).length;
  const end = { events: events.length, streams, head: events.at(-1)?.position ?? null };
  return [headLine({ origin, from: null }), ...events.map(eventLine), endLine(end), ''].join('\n');
}

export type Kept = {
  readonly jwks?: unknown;
  /** Signed notes. */
  readonly checkpoints?: readonly string[];
};

export type TextAudit = {
  readonly findings: readonly Finding[];
  readonly summary: AuditSummary;
};

/** What the command does with a file, without a process of its own. */
export async function auditText(text: string, { jwks, checkpoints = [] }: Kept = {}): Promise<TextAudit> {
  const findings: Finding[] = [];
  const found = (finding: Finding) => findings.push(finding);
  const keys = jwks === undefined ? null : fromJwkSet(jwks);
  const auditor = openAuditor(found, { kept: { keys, checkpoints: checkpoints.map(keptOf) } });
  try {
    for await (const one of eventsOfExport('the export', chunksOf(text), found, () => undefined)) {
      if (one.kind === 'event') await auditor.take(one.event);
      else auditor.takeDamaged(one.damage);
    }
    return { summary: await auditor.finish(), findings };
  } finally {
    auditor.close();
  }
}

function keptOf(note: string): KeptCheckpoint {
  const head = parseCheckpoint(note);
  if (head === null) throw new Error('no checkpoint');
  return { ...head, note, source: 'kept' };
}

/** Cut where no line ends. */
async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  const bytes = utf8(text);
  for (let from = 0; from < bytes.length; from += 10_007) yield bytes.subarray(from, from + 10_007);
}
