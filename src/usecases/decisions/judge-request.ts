// The one verdict on a request's target, for policy check, decision and execution: text, name, DNS, mode, quota.

import type { DescribeAddress } from '#src/domain/destination/addresses.ts';
import { type JudgedHeaders, judgeHeaders } from '#src/domain/destination/headers.ts';
import { judgeAnswer, judgeTarget, type TargetRules } from '#src/domain/destination/policy.ts';
import { readTarget, type Target } from '#src/domain/destination/url.ts';
import { toHex } from '#src/domain/encoding.ts';
import type { Route } from '#src/domain/event-fields.ts';
import {
  fingerprintText,
  type NormalRequest,
  normaliseRequest,
  type WebhookRequest,
} from '#src/domain/job/webhook-request.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import {
  ALLOWED,
  type Allowed,
  isRefused,
  type Refused,
  refused,
  tooManyInFlight,
} from '#src/domain/refusal.ts';
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import type { KeyedHash } from '#src/ports/signer.ts';

export type JudgeDeps = {
  readonly rules: TargetRules;
  readonly describeAddress: DescribeAddress;
  readonly resolver: Resolver;
  readonly quota: Quota;
  readonly targetQuotaPerMinute: number;
};

export type TargetRefused = Refused<
  | 'invalid_request'
  | 'unsafe_target'
  | 'target_blocked'
  | 'target_not_allowed'
  | 'target_unresolvable'
  | 'target_quota_exceeded'
  | 'too_many_in_flight'
>;

export type ReadRequest = {
  readonly target: Target;
  readonly headers: JudgedHeaders;
  readonly request: NormalRequest;
};

/** Checks what no schema can: the URL parses, the headers are well-formed. `place`: JSON pointer in the body. */
export function readRequest(request: WebhookRequest, place = ''): ReadRequest | Refused<'invalid_request'> {
  const target = readTarget(request.url, `${place}/url`);
  if (isRefused(target)) return target;
  const headers = judgeHeaders(request.headers ?? {}, `${place}/headers`);
  if (isRefused(headers)) return headers;
  return { target, headers, request: normaliseRequest(request, target.href) };
}

export function fingerprint(
  keyedHash: KeyedHash,
  request: NormalRequest,
  route: Route,
  decisionId: string | null,
) {
  return toHex(keyedHash.mac('fingerprint', fingerprintText(request, route, decisionId)));
}

/** `payer` null if it is unknown who will pay (policy check): then only the host's quota is read. */
export async function judgeRequest(
  deps: JudgeDeps,
  target: Target,
  payer: string | null,
): Promise<Allowed | TargetRefused> {
  const verdict = await judgePlace(deps, target);
  if (isRefused(verdict)) return verdict;
  const states = await Promise.all(
    quotas(deps, target, payer).map(([rule, key]) => deps.quota.look(rule, key)),
  );
  return judgeQuota(states);
}

/** Whether the target may be called at all, whatever its quota: text, name, mode, DNS. */
export async function judgePlace(
  { describeAddress, rules, resolver }: Pick<JudgeDeps, 'describeAddress' | 'rules' | 'resolver'>,
  target: Target,
): Promise<Allowed | TargetRefused> {
  const verdict = judgeTarget(target, describeAddress, rules);
  if (isRefused(verdict) || target.literal) return verdict;
  const answer = await resolver.resolve(target.hostname, LIMITS.policyDnsMs.max);
  if (answer.outcome === 'busy') return tooManyInFlight();
  return judgeAnswer(target, answer, describeAddress, rules);
}

/**
 * Takes one unit of each quota of the target, once per new execution. The payer's own comes first: a payer that has used
 * it up takes nothing from the other payers' share of the host.
 */
export async function takeQuota(
  deps: JudgeDeps,
  target: Target,
  payer: string,
): Promise<Allowed | Refused<'target_quota_exceeded'>> {
  for (const [rule, key] of quotas(deps, target, payer)) {
    const verdict = judgeQuota([await deps.quota.take(rule, key)]);
    if (isRefused(verdict)) return verdict;
  }
  return ALLOWED;
}

const WINDOW_MS = 60_000;

export function targetQuota(deps: Pick<JudgeDeps, 'rules' | 'targetQuotaPerMinute'>): QuotaRule | null {
  if (deps.rules.mode !== 'blocklist-quota') return null;
  return { name: 'target-per-payer', windowMs: WINDOW_MS, maxRequests: deps.targetQuotaPerMinute };
}

function quotas(deps: JudgeDeps, target: Target, payer: string | null): [QuotaRule, string][] {
  const perPayer = targetQuota(deps);
  if (perPayer === null) return [];
  const maxRequests = perPayer.maxRequests * FACTORS.targetQuotaOfAllPayers;
  const overall = { ...perPayer, name: 'target', maxRequests };
  const all: [QuotaRule, string] = [overall, target.hostname];
  return payer === null ? [all] : [[perPayer, `${payer} ${target.hostname}`], all];
}

function judgeQuota(states: readonly QuotaState[]): Allowed | Refused<'target_quota_exceeded'> {
  const full = states.filter((state) => !state.allowed);
  if (full.length === 0) return ALLOWED;
  const resetMs = Math.max(...full.map((state) => state.resetMs));
  return refused('target_quota_exceeded', 'The quota of this target is used up.', {
    retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
  });
}
