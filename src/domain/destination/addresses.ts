// Which IP addresses may be dialled, by their bytes and their registered range.

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
  /** Development only: exempt from the block of non-public ranges. Addresses of NAT64 prefixes never are. */
  readonly allow: readonly Cidr[];
  /** Refused in every case, also if `allow` contains them. */
  readonly deny: readonly Cidr[];
  /** The prefix of the network's NAT64 (RFC 6052), beside 64:ff9b::/96; null if it has none. */
  readonly nat64: Cidr | null;
  /** This service's own addresses. Non-public ones are refused as non-public, unless `allow` contains them. */
  readonly own: readonly AddressFacts[];
};

export type AddressVerdict =
  | { readonly allowed: true; readonly exempted: boolean }
  | { readonly allowed: false };

/**
 * An address of a NAT64 prefix is the IPv4 address in it, which no exemption covers: behind the prefix is all of IPv4, also metadata
 * and loopback addresses. `ownAllowed`: for the canary, the only URL of this service that may be called.
 */
export function judgeAddress(
  facts: AddressFacts,
  rules: AddressRules,
  describe: DescribeAddress,
  ownAllowed = false,
): AddressVerdict {
  if (rules.deny.some((cidr) => isInside(facts.bytes, cidr))) return DENIED;
  const prefix = nat64PrefixOf(facts, rules);
  if (prefix !== null) {
    const embedded = embeddedIpv4(facts.bytes, prefix.prefix);
    const ipv4 = embedded === null ? null : describe(embedded);
    return ipv4 === null ? DENIED : judgeAddress(ipv4, { ...rules, allow: [] }, describe, ownAllowed);
  }
  if (!isPublic(facts)) {
    const exempted = rules.allow.some((cidr) => isInside(facts.bytes, cidr));
    return exempted ? { allowed: true, exempted } : DENIED;
  }
  if (!ownAllowed && rules.own.some((own) => sameAddress(own, facts))) return DENIED;
  return { allowed: true, exempted: false };
}

const DENIED: AddressVerdict = { allowed: false };

const WELL_KNOWN_NAT64: Cidr = { bytes: [0, 0x64, 0xff, 0x9b, ...new Array<number>(12).fill(0)], prefix: 96 };
/** The NAT64 prefix that the address is in; null if it is in none. */
export function nat64PrefixOf({ bytes }: AddressFacts, { nat64 }: AddressRules): Cidr | null {
  return [nat64, WELL_KNOWN_NAT64].find((cidr) => cidr !== null && isInside(bytes, cidr)) ?? null;
}

/** RFC 6052 §2.2. */
const NAT64_LENGTHS: readonly number[] = [32, 40, 48, 56, 64, 96];
/** This byte of the address is zero, and no part of the IPv4 address. */
const RESERVED_BYTE = 8;

/** Whether it is a prefix of RFC 6052 §2.2, without further bits. */
export function isNat64Prefix({ bytes, prefix }: Cidr): boolean {
  const rest = bytes.slice(prefix / 8);
  return (
    bytes.length === 16 &&
    NAT64_LENGTHS.includes(prefix) &&
    bytes[RESERVED_BYTE] === 0 &&
    rest.every((byte) => byte === 0)
  );
}

/** The IPv4 address in an address of a NAT64 prefix of this length; null if the address is not of that form. */
function embeddedIpv4(bytes: readonly number[], prefix: number): string | null {
  if (bytes[RESERVED_BYTE] !== 0) return null;
  return bytes
    .filter((_, at) => at >= prefix / 8 && (at !== RESERVED_BYTE || prefix > 64))
    .slice(0, 4)
    .join('.');
}

/** Azure's wire server answers every virtual machine of Azure, in a range that is registered as public. */
const AZURE_WIRE_SERVER: Cidr = { bytes: [168, 63, 129, 16], prefix: 32 };
/** Global unicast, RFC 4291 §2.4: the only block that IANA has allocated from. */
const GLOBAL_UNICAST: Cidr = { bytes: [0x20, 0], prefix: 3 };

/** IPv6 forms that contain an IPv4 address (mapped, compatible, 6to4, Teredo) have their own ranges, not `unicast`. */
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
