// The target policy of policy check, decision and execution: a verdict on the URL, then on the DNS answer,
// and which IP addresses may be dialled, by their bytes and their registered range.
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
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
  | { readonly outcome: 'addresses'; readonly addresses: readonly string[] }
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'failed'; readonly timedOut: boolean }
  | { readonly outcome: 'busy' };

/** The address to dial. `exempted`: non-public, and allowed by configuration. */
export type Dial = { readonly address: AddressFacts; readonly exempted: boolean };

/** The verdict before any DNS look-up: text, name, port, literal address, the mode's lists. */
export function judgeTarget(
  target: Target,
  describe: DescribeAddress,
  rules: TargetRules,
): Allowed | TargetRefusal {
  const verdict = judgeUrl(target, rules.url);
  if (isRefused(verdict)) return verdict;
  if (target.literal && chooseDial(target, [target.hostname], describe, rules) === null)
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

/** A parsed IP address. The parser is an argument. */
export type AddressFacts = {
  /** Standard text: dotted quad, or RFC 5952. */
  readonly text: string;
  readonly family: 4 | 6;
  /** 4 or 16, in network order. */
  readonly bytes: readonly number[];
  /** `unicast` for an ordinary public address, else the name of its special range. */
  readonly range: string;
};

/** null: not an address. */
export type DescribeAddress = (text: string) => AddressFacts | null;

/** `bytes` up to `prefix` bits. */
export type Cidr = { readonly bytes: readonly number[]; readonly prefix: number };

export type AddressRules = {
  /** Development only: exempt from the block of non-public ranges. */
  readonly allow: readonly Cidr[];
  /** Refused in every case, also if `allow` contains them. */
  readonly deny: readonly Cidr[];
  /** This service's own addresses. Non-public ones are refused as non-public, unless `allow` contains them. */
  readonly own: readonly AddressFacts[];
};

export type AddressVerdict =
  | { readonly allowed: true; readonly exempted: boolean }
  | { readonly allowed: false };

/** `ownAllowed`: for the canary, the only URL of this service that may be called. */
export function judgeAddress(facts: AddressFacts, rules: AddressRules, ownAllowed = false): AddressVerdict {
  if (rules.deny.some((cidr) => isInside(facts.bytes, cidr))) return { allowed: false };
  if (!isPublic(facts)) {
    const exempted = rules.allow.some((cidr) => isInside(facts.bytes, cidr));
    return exempted ? { allowed: true, exempted } : { allowed: false };
  }
  if (!ownAllowed && rules.own.some((own) => sameAddress(own, facts))) return { allowed: false };
  return { allowed: true, exempted: false };
}

/** Azure's wire server answers every virtual machine of Azure, in a range that is registered as public. */
const AZURE_WIRE_SERVER: Cidr = { bytes: [168, 63, 129, 16], prefix: 32 };
/** Global unicast, RFC 4291 §2.4: the only block that IANA has allocated from. */
const GLOBAL_UNICAST: Cidr = { bytes: [0x20, 0], prefix: 3 };

/** IPv6 forms that contain an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) have their own ranges, not `unicast`. */
export function isPublic(facts: AddressFacts): boolean {
  if (facts.range !== 'unicast') return false;
  return facts.family === 4
    ? !isInside(facts.bytes, AZURE_WIRE_SERVER)
    : isInside(facts.bytes.slice(0, 2), GLOBAL_UNICAST);
}

/** False if the families differ. */
export function isInside(bytes: readonly number[], cidr: Cidr): boolean {
  if (bytes.length !== cidr.bytes.length) return false;
  return bytes.every((byte, i) => {
    const bits = Math.min(8, Math.max(0, cidr.prefix - 8 * i));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (byte & mask) === ((cidr.bytes[i] ?? 0) & mask);
  });
}

export function sameAddress(a: AddressFacts, b: AddressFacts): boolean {
  return a.bytes.length === b.bytes.length && a.bytes.every((byte, i) => byte === b.bytes[i]);
}
