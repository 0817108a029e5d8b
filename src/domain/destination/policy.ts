// The target policy of policy check, decision and execution: a verdict on the URL, then on the DNS answer.
import { type Refused, refused } from '#src/domain/refusal.ts';
import { type AddressFacts, type AddressRules, type DescribeAddress, judgeAddress } from './addresses.ts';
import { isWithin, matchesHost } from './names.ts';
import { judgeUrl, type ParseUrl, type Target, type UrlRules, unsafeTarget } from './url.ts';

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

export type TargetReaders = { readonly parse: ParseUrl; readonly describe: DescribeAddress };

export type TargetRefusal = Refused<
  'unsafe_target' | 'target_blocked' | 'target_not_allowed' | 'target_unresolvable'
>;

/** The result of a DNS look-up: see the resolver port. */
export type DnsAnswer =
  | { readonly outcome: 'addresses'; readonly addresses: readonly string[] }
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'failed'; readonly timedOut: boolean }
  | { readonly outcome: 'busy' };

/** The address to dial. `exempted`: non-public, and allowed by configuration. */
export type Dial = { readonly address: AddressFacts; readonly exempted: boolean };

/** The verdict before any DNS look-up: text, name, port, literal address, the mode's lists. null: allowed so far. */
export function judgeTarget(
  target: Target,
  describe: DescribeAddress,
  rules: TargetRules,
): TargetRefusal | null {
  const refusal = judgeUrl(target, rules.url);
  if (refusal !== null) return refusal;
  if (target.literal && chooseDial(target, [target.hostname], describe, rules) === null)
    return unsafeTarget();
  return judgeHost(target, rules);
}

function judgeHost(target: Target, rules: TargetRules): TargetRefusal | null {
  switch (rules.mode) {
    case 'open-public-https':
      return null;
    case 'blocklist-quota':
      return rules.blockHosts.some(
        (host) => isWithin(target.hostname, host) || matchesHost(target.hostname, host),
      )
        ? refused('target_blocked', 'The target host is on the block list of this service.')
        : null;
    case 'allowlist':
      return rules.allowHosts.some((host) => matchesHost(target.hostname, host))
        ? null
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
): Dial | Refused<'target_unresolvable'> {
  if (answer.outcome === 'failed' || answer.outcome === 'busy')
    return unresolvable('The target host could not be looked up.', true);
  const addresses = answer.outcome === 'addresses' ? answer.addresses : [];
  return (
    chooseDial(target, addresses, describe, rules) ??
    unresolvable('The target host has no public address.', false)
  );
}

function unresolvable(message: string, retryable: boolean): Refused<'target_unresolvable'> {
  return refused('target_unresolvable', message, { details: { retryable } });
}

/** The address to dial, IPv4 before IPv6; null if there is none, or if any of them may not be dialled. */
export function chooseDial(
  target: Target,
  addresses: readonly string[],
  describe: DescribeAddress,
  rules: TargetRules,
): Dial | null {
  const ownAllowed = target.href === rules.url.own.canary;
  const dials: Dial[] = [];
  for (const text of addresses) {
    const address = describe(text);
    if (address === null) return null;
    const verdict = judgeAddress(address, rules.addresses, ownAllowed);
    if (!verdict.allowed) return null;
    dials.push({ address, exempted: verdict.exempted });
  }
  return dials.find((dial) => dial.address.family === 4) ?? dials[0] ?? null;
}
