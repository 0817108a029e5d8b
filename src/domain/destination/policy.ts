// The target policy of policy check, decision and execution: a verdict on the URL, then on the DNS answer.
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import {
  type AddressFacts,
  type AddressRules,
  type DescribeAddress,
  judgeAddress,
  nat64PrefixOf,
} from './addresses.ts';
import { isWithin, judgeUrl, matchesHost, type Target, type UrlRules, unsafeTarget } from './url.ts';

export type PolicyMode = 'open-public-https' | 'blocklist-quota' | 'allowlist';

export type TargetRules = {
  readonly mode: PolicyMode;
  /** Host names in lower case; each covers the names under it too (`*.example.com`: those only). Used in
   * `blocklist-quota` only. */
  readonly blockHosts: readonly string[];
  /** Host names, or `*.example.com` for every name under it. Used in `allowlist` only. */
  readonly allowHosts: readonly string[];
  readonly url: UrlRules;
  readonly addresses: AddressRules;
};

export type TargetRefusal = Refused<
  'unsafe_target' | 'target_blocked' | 'target_not_allowed' | 'target_unresolvable'
>;

/** The result of a DNS look-up: see the resolver port. */
export type DnsAnswer =
  | { readonly outcome: 'addresses'; readonly addresses: readonly string[]; readonly isPartial?: true }
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'failed'; readonly timedOut: boolean }
  | { readonly outcome: 'busy' };

/** An address to dial. `exempted`: non-public, and allowed by configuration. */
export type Dial = { readonly address: AddressFacts; readonly exempted: boolean };

/** The verdict before any DNS look-up: text, name, port, literal address, the mode's lists. */
export function judgeTarget(
  target: Target,
  describe: DescribeAddress,
  rules: TargetRules,
): Allowed | TargetRefusal {
  const verdict = judgeUrl(target, rules.url);
  if (isRefused(verdict)) return verdict;
  if (target.literal && chooseDials(target, [target.hostname], describe, rules).length === 0)
    return unsafeTarget();
  return judgeHost(target, rules);
}

function judgeHost(target: Target, rules: TargetRules): Allowed | TargetRefusal {
  switch (rules.mode) {
    case 'open-public-https':
      return ALLOWED;
    case 'blocklist-quota':
      return rules.blockHosts.some(
        (host) => isWithin(target.hostname, host) || matchesHost(target.hostname, host),
      )
        ? refused('target_blocked', 'The target host is on the block list of this service.')
        : ALLOWED;
    case 'allowlist':
      return rules.allowHosts.some((host) => matchesHost(target.hostname, host))
        ? ALLOWED
        : refused('target_not_allowed', 'The target host is not on the allow list of this service.');
    default:
      return rules.mode satisfies never;
  }
}

/**
 * The verdict on the DNS answer. A name with a non-public address is refused like a name without addresses, so that
 * callers cannot find out which internal names exist. `details.retryable` is true only if DNS gave no answer.
 */
export function judgeAnswer(
  target: Target,
  answer: DnsAnswer,
  describe: DescribeAddress,
  rules: TargetRules,
): Allowed | Refused<'target_unresolvable'> {
  if (answer.outcome === 'failed' || answer.outcome === 'busy')
    return unresolvable('The target host could not be looked up.', true);
  const addresses = answer.outcome === 'addresses' ? answer.addresses : [];
  return chooseDials(target, addresses, describe, rules).length > 0
    ? ALLOWED
    : unresolvable('The target host has no public address.', false);
}

/** Whether DNS gave no answer: a repeat may be allowed, and nothing is known of the target. */
export function isUnresolvedNow({ refused, details }: Refused): boolean {
  const isRetryable = typeof details === 'object' && details !== null && 'retryable' in details;
  return refused === 'target_unresolvable' && isRetryable && details.retryable === true;
}

function unresolvable(message: string, retryable: boolean): Refused<'target_unresolvable'> {
  return refused('target_unresolvable', message, { details: { retryable } });
}

/**
 * The addresses to dial, in this order: IPv4 and IPv6 alternately (RFC 8305 §4), IPv4 first. None if there is no address, or if
 * any of them may not be dialled.
 */
export function chooseDials(
  target: Target,
  addresses: readonly string[],
  describe: DescribeAddress,
  rules: TargetRules,
): readonly Dial[] {
  const ownAllowed = target.href === rules.url.own.canary;
  const dials: Dial[] = [];
  for (const text of addresses) {
    const address = describe(text);
    if (address === null) return [];
    // DNS64 makes such an address of a name. In a URL it only hides an IPv4 address.
    if (target.literal && nat64PrefixOf(address, rules.addresses) !== null) return [];
    const verdict = judgeAddress(address, rules.addresses, describe, ownAllowed);
    if (!verdict.allowed) return [];
    dials.push({ address, exempted: verdict.exempted });
  }
  const [four, six] = [dials.filter(isIpv4), dials.filter((dial) => !isIpv4(dial))];
  return dials.flatMap((_, i) => [four[i], six[i]].filter((dial) => dial !== undefined));
}

const isIpv4 = ({ address }: Dial) => address.family === 4;
