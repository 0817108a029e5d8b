// Builds a package of steps for an external browser agent. The target is judged as for an execution; nothing is called,
// stored or recorded.

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
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import type { PolicyCheck } from '#src/usecases/decisions/check-policy.ts';
import {
  type JudgeDeps,
  judgePlace,
  judgeRequest,
  type TargetRefused,
} from '#src/usecases/decisions/judge-request.ts';

/** `resolver`: the one for free look-ups. */
export type HandoffDeps = JudgeDeps & {
  readonly clock: Pick<Clock, 'now'>;
  readonly entropy: Pick<Entropy, 'bytes'>;
  /** Whose quota of the target is looked at; null where it is not known who will pay. */
  readonly payer: string | null;
};

export type Handoff = {
  readonly verdict:
    | { readonly allowed: true; readonly handoff: HandoffPackage }
    | { readonly allowed: false; readonly refusal: TargetRefused };
  readonly warnings: PolicyCheck['warnings'];
};

export async function handOffBrowser(
  deps: HandoffDeps,
  { targetUrl, actions, returnUrl, idempotencyKey: key }: HandoffRequest,
): Promise<Handoff | Refused<'invalid_request' | 'invalid_handoff_actions'>> {
  const missing = missingMembers(actions);
  if (missing.length > 0) {
    const message = 'An action lacks what its type needs: see details.';
    const details = missing.map(({ path, message }) => ({ path: `/actions${path}`, message }));
    return refused('invalid_handoff_actions', message, { details });
  }
  const page = readPage(deps, targetUrl, '/targetUrl');
  if (isRefused(page)) return page;
  const back = returnUrl === undefined ? null : readPage(deps, returnUrl, '/returnUrl');
  if (back !== null && isRefused(back)) return back;
  const notBack = back === null ? null : await judgePlace(deps, back.target);
  if (notBack !== null && !mayPass(notBack)) return badReturn(notBack);
  const idempotencyKey = key ?? null;
  const warnings = handoffWarnings(actions, idempotencyKey);
  const refusal = notBack ?? (await judgeRequest(deps, page.target, deps.payer));
  if (refusal !== null) return { verdict: { allowed: false, refusal }, warnings };
  const now = deps.clock.now();
  const { url, pathname } = page;
  const { origin, hostname } = page.target;
  const facts = {
    id: makeId('hnd', deps.entropy.bytes(16)),
    createdAt: new Date(now).toISOString(),
    expiresAt: new Date(now + LIMITS.handoffValidMs.max).toISOString(),
    target: { url, origin, hostname, pathname },
    returnUrl: back === null ? null : back.url,
    idempotencyKey,
  };
  return { verdict: { allowed: true, handoff: makePackage(facts, actions) }, warnings };
}

/** `url`: for the browser: the target's normalised address with the fragment, which no server gets. */
type Page = { readonly target: Target; readonly url: string; readonly pathname: string };

function readPage({ readers }: HandoffDeps, text: string, place: string): Page | Refused<'invalid_request'> {
  const parts = readers.parse(text);
  const target = readTarget(text, () => parts, place);
  if (isRefused(target)) return target;
  const [pathname = '/'] = target.path.split('?', 1);
  return { target, url: `${target.href}${parts?.hash ?? ''}`, pathname };
}

/** Whether the same request may succeed in a moment. */
function mayPass({ refused: code, details }: TargetRefused): boolean {
  if (code === 'too_many_in_flight') return true;
  return (
    typeof details === 'object' && details !== null && 'retryable' in details && details.retryable === true
  );
}

/** A fault of the request, not of the target. */
function badReturn({ message }: TargetRefused): Refused<'invalid_request'> {
  const details = [{ path: '/returnUrl', message }];
  return refused('invalid_request', 'The returnUrl is not one that this service hands on: see details.', {
    details,
  });
}
