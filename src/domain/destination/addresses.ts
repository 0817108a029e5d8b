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
