// What a URL's text comes to: read once, then judged, as the use case does. For tests that start from a text.

import {
  judgeTarget,
  type TargetReaders,
  type TargetRefusal,
  type TargetRules,
} from '#src/domain/destination/policy.ts';
import {
  judgeUrl,
  type ParseUrl,
  readTarget,
  type Target,
  type UrlRules,
} from '#src/domain/destination/url.ts';
import type { Refused } from '#src/domain/refusal.ts';

export function judgeUrlText(
  text: string,
  parse: ParseUrl,
  rules: UrlRules,
): Target | Refused<'invalid_request' | 'unsafe_target'> {
  const target = readTarget(text, parse);
  return 'refused' in target ? target : (judgeUrl(target, rules) ?? target);
}

export function judgeTargetText(
  text: string,
  readers: TargetReaders,
  rules: TargetRules,
): Target | Refused<'invalid_request'> | TargetRefusal {
  const target = readTarget(text, readers.parse);
  return 'refused' in target ? target : (judgeTarget(target, readers.describe, rules) ?? target);
}
