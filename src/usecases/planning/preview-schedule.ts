// Previews a schedule: its next runs, and the policy check of its webhook. Nothing is scheduled, called or stored.
import {
  type Calendar,
  previewOf,
  type Schedule,
  type ScheduleFault,
  type SchedulePreviewRequest,
} from '#src/domain/planning/schedule.ts';
import { isRefused, type Refused, refused, warningsIf } from '#src/domain/refusal.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import { checkPolicy, type PolicyCheck } from '#src/usecases/decisions/check-policy.ts';
import { type JudgeDeps, readRequest } from '#src/usecases/decisions/judge-request.ts';

/** `resolver`: the one for lookups of free routes. */
type PreviewDeps = JudgeDeps & {
  readonly clock: Pick<Clock, 'now'>;
  readonly calendar: Calendar;
  /** The payer whose quota of the target is checked; null if unknown. */
  readonly payer: string | null;
};

export type SchedulePreview = {
  readonly schedule: Schedule;
  /** RFC 3339, UTC, milliseconds; in order. */
  readonly nextRuns: readonly string[];
  readonly webhook: PolicyCheck;
  readonly warnings: PolicyCheck['warnings'];
};

export async function previewSchedule(
  deps: PreviewDeps,
  { webhook, schedule }: SchedulePreviewRequest,
): Promise<SchedulePreview | Refused<'invalid_request' | 'invalid_schedule'>> {
  const preview = previewOf(schedule, deps.clock.now(), deps.calendar);
  if (preview.kind === 'fault') return refuse(preview, readRequest(webhook, '/webhook'));
  const checked = await checkPolicy(deps, webhook, deps.payer, '/webhook');
  if (isRefused(checked)) return checked;
  return {
    schedule: preview.schedule,
    nextRuns: preview.runs.map((run) => iso(run)),
    webhook: checked,
    warnings: [...checked.warnings, ...warningsOf(preview.schedule, checked)],
  };
}

/** Errors of the webhook are listed first, under their own code. */
function refuse(
  { path, message }: ScheduleFault,
  read: ReturnType<typeof readRequest>,
): Refused<'invalid_request' | 'invalid_schedule'> {
  const fault = { path: `/schedule${path}`, message };
  if (isRefused(read) && Array.isArray(read.details)) return { ...read, details: [...read.details, fault] };
  return refused('invalid_schedule', 'The schedule is invalid: see details.', { details: [fault] });
}

const warningsOf = ({ type }: Schedule, { normalized }: PolicyCheck) =>
  warningsIf([
    type === 'daily' && normalized.idempotencyKeyPresent,
    'idempotency_key_shared_by_runs',
    'With one idempotencyKey every later run is a replay of the first: give each run its own.',
  ]);
