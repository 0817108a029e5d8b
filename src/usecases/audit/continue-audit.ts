// Whether an audit can continue the one that left its state: the log has to contain what that one ended with.
import type { EventLog } from '#src/ports/event-log.ts';
import type { Folds } from './audit-folds.ts';
import type { Auditor } from './audit-log.ts';
import { containsEvent } from './export-log.ts';

export type Continued =
  /** `after`: position of the last event that was audited; null: the audit begins with the first event. */
  | { readonly kind: 'continued'; readonly after: string | null }
  /** Another release has written the state. */
  | { readonly kind: 'other_release'; readonly release: string }
  /** It was made with other trusted keys or another policy. */
  | { readonly kind: 'other_evidence' }
  /** The log lacks the checkpoint, or the last event, that the state ends with. */
  | { readonly kind: 'other_log'; readonly what: string };

/** Reports the findings of the earlier audits, in their order. */
export async function continueAudit(auditor: Auditor, log: Pick<EventLog, 'readStream'>): Promise<Continued> {
  const { saved, release, evidence } = auditor.kept;
  if (saved === null) return { kind: 'continued', after: null };
  if (saved.release !== release) return { kind: 'other_release', release: saved.release };
  if (saved.evidence !== evidence) return { kind: 'other_evidence' };
  const { checkpoint, last } = saved;
  if (checkpoint !== null && !(await containsNote(log, checkpoint)))
    return { kind: 'other_log', what: `the checkpoint of ${saved.tree.state.largest} leaves` };
  if (last !== null && !(await containsEvent(log, { ...last, revision: BigInt(last.revision) })))
    return { kind: 'other_log', what: `revision ${last.revision} of ${last.stream}` };
  auditor.repeatFindings();
  return { kind: 'continued', after: last?.position ?? null };
}

async function containsNote(
  log: Pick<EventLog, 'readStream'>,
  { stream, revision, id, position, note }: NonNullable<Folds['checkpoint']>,
): Promise<boolean> {
  const [found] = await log.readStream(stream, { from: BigInt(revision), max: 1 });
  return (
    String(found?.revision) === revision &&
    found?.id === id &&
    found.position === position &&
    found.data.note === note
  );
}
