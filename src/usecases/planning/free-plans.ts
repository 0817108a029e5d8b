// The free plans: the preview of a schedule, and a package of steps for an external browser agent. Targets are checked as for
// an execution; nothing is scheduled, called, stored or recorded.

import { readTarget, type Target } from '#src/domain/destination/url.ts';
import { makeId } from '#src/domain/ids.ts';
import { LIMITS } from '#src/domain/limits.ts';
import {
  type HandoffPackage,
  type HandoffRequest,
  handoffWarnings,
  makePackage,
  missingMembers,
} from '#src/domain/planning/handoff.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused, warningsIf } from '#src/domain/refusal.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import type { PaidSchedule, ScheduleFault } from '#src/domain/schedule/plan.ts';
import { previewOf, type SchedulePreviewRequest } from '#src/domain/schedule/preview.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import { checkPolicy, type PolicyCheck } from '#src/usecases/decisions/check-policy.ts';
import {
  type JudgeDeps,
  judgePlace,
  judgeRequest,
  readRequest,
  type TargetRefused,
} from '#src/usecases/decisions/judge-request.ts';

/** `resolver`: the one for lookups of free routes. */
type PlanDeps = JudgeDeps & {
  readonly clock: Pick<Clock, 'now'>;
  /** The payer whose quota of the target is checked; null if unknown. */
  readonly payer: string | null;
};

// ── schedules ───────────────────────────────────────────────────────────────────────────────────────────

export type SchedulePreview = {
  readonly schedule: PaidSchedule;
  /** RFC 3339, UTC, milliseconds; in order. */
  readonly nextRuns: readonly string[];
  readonly webhook: PolicyCheck;
  readonly warnings: PolicyCheck['warnings'];
};

export async function previewSchedule(
  deps: PlanDeps & { readonly calendar: Calendar },
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

const warningsOf = ({ type }: PaidSchedule, { normalized }: PolicyCheck) =>
  warningsIf([
    type !== 'once' && normalized.idempotencyKeyPresent,
    'idempotency_key_shared_by_runs',
    'With one idempotencyKey every later run is a replay of the first: give each run its own.',
  ]);

// ── browser handoffs ────────────────────────────────────────────────────────────────────────────────────

export type Handoff = {
  readonly verdict: (Allowed & { readonly handoff: HandoffPackage }) | TargetRefused;
  readonly warnings: PolicyCheck['warnings'];
};

export async function handOffBrowser(
  deps: PlanDeps & { readonly entropy: Pick<Entropy, 'bytes'> },
  { targetUrl, actions, returnUrl, idempotencyKey: key }: HandoffRequest,
): Promise<Handoff | Refused<'invalid_request' | 'invalid_handoff_actions'>> {
  const missing = missingMembers(actions);
  if (missing.length > 0) {
    const message = 'An action lacks a field that its type requires: see details.';
    const details = missing.map(({ path, message }) => ({ path: `/actions${path}`, message }));
    return refused('invalid_handoff_actions', message, { details });
  }
  const page = readPage(targetUrl, '/targetUrl');
  if (isRefused(page)) return page;
  const returnPage = returnUrl === undefined ? null : readPage(returnUrl, '/returnUrl');
  if (returnPage !== null && isRefused(returnPage)) return returnPage;
  const idempotencyKey = key ?? null;
  const warnings = handoffWarnings(actions, idempotencyKey);
  const returning = returnPage === null ? ALLOWED : await judgePlace(deps, returnPage.target);
  const verdict = isRefused(returning)
    ? { ...returning, message: `returnUrl: ${returning.message}` }
    : await judgeRequest(deps, page.target, deps.payer);
  if (isRefused(verdict)) return { verdict, warnings };
  const now = deps.clock.now();
  const { url, pathname } = page;
  const { origin, hostname } = page.target;
  const facts = {
    id: makeId('hnd', deps.entropy.bytes(16)),
    createdAt: iso(now),
    expiresAt: iso(now + LIMITS.handoffValidMs.max),
    target: { url, origin, hostname, pathname },
    returnUrl: returnPage === null ? null : returnPage.url,
    idempotencyKey,
  };
  return { verdict: { ...verdict, handoff: makePackage(facts, actions) }, warnings };
}

/** `url`: the target's normalised address for the browser, with the fragment, which is not sent to servers. */
type Page = { readonly target: Target; readonly url: string; readonly pathname: string };

function readPage(text: string, place: string): Page | Refused<'invalid_request'> {
  const target = readTarget(text, place);
  if (isRefused(target)) return target;
  const [pathname = '/'] = target.path.split('?', 1);
  return { target, url: `${target.href}${new URL(text).hash}`, pathname };
}
