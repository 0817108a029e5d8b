// What a URL's text comes to: read once, then judged, as the use case does. For tests that start from a text.

import type { DescribeAddress } from '#src/domain/destination/addresses.ts';
import { judgeTarget, type TargetRefusal, type TargetRules } from '#src/domain/destination/policy.ts';
import { judgeUrl, readTarget, type Target, type UrlRules } from '#src/domain/destination/url.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';

export function judgeUrlText(
  text: string,
  rules: UrlRules,
): Target | Refused<'invalid_request' | 'unsafe_target'> {
  const target = readTarget(text);
  if (isRefused(target)) return target;
  const verdict = judgeUrl(target, rules);
  return isRefused(verdict) ? verdict : target;
}

export function judgeTargetText(
  text: string,
  describe: DescribeAddress,
  rules: TargetRules,
): Target | Refused<'invalid_request'> | TargetRefusal {
  const target = readTarget(text);
  if (isRefused(target)) return target;
  const verdict = judgeTarget(target, describe, rules);
  return isRefused(verdict) ? verdict : target;
}
