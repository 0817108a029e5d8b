// How the text of a variable becomes a value: one function a kind.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { isNat64Prefix } from '#src/domain/destination/addresses.ts';
import { isHeaderName } from '#src/domain/destination/headers.ts';
import { checksumState } from '#src/lib/evm-address.ts';
import { readPostgresUrl } from '#src/lib/postgres-url.ts';

/** Why a text is no value of its kind. Never repeats the text: it may be a secret, or hold one. */
export class Problem extends Error {}

/** Throws `Problem`. */
export type Parse<T> = (text: string) => T;

export const boolean: Parse<boolean> = (text) => {
  if (text !== 'true' && text !== 'false') throw new Problem('must be true or false');
  return text === 'true';
};

export const wholeNumber =
  (min: number, max: number): Parse<number> =>
  (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new Problem(`must be a whole number from ${min} to ${max}`);
    return value;
  };

export const oneOf =
  <T>(values: Readonly<Record<string, T>>): Parse<T> =>
  (text) => {
    const value = Object.hasOwn(values, text) ? values[text] : undefined;
    if (value === undefined) throw new Problem(`must be one of ${Object.keys(values).join(', ')}`);
    return value;
  };

/** Items between commas; blanks around them are dropped, repeats too. */
export const list =
  <T>(item: Parse<T>): Parse<readonly T[]> =>
  (text) => {
    const parts = text.split(',').map((part) => part.trim());
    if (parts.includes('')) throw new Problem('has an empty item: items stand between commas');
    return [...new Set(parts.map(item))];
  };

/** In lower case. A cookie may log in at the target: it is shown to no caller. */
export const returnedHeader: Parse<string> = (text) => {
  const name = text.toLowerCase();
  if (!isHeaderName(name)) throw new Problem('must have names of response headers');
  if (/^set-cookie2?$/.test(name)) throw new Problem('must not have set-cookie: it may log in at the target');
  return name;
};

/** An IP address without brackets or zone, or a host name. */
export const listenHost: Parse<string> = (text) => {
  if (isAddress(text) || isHostName(text)) return text.toLowerCase();
  throw new Problem('must be an IP address (IPv6 without brackets) or a host name');
};

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));

/**
 * `https://relay.example`, without a slash at its end. URL parsers accept quotes and dollar signs in a
 * host; here they are refused, because people paste commands with this origin into a shell.
 */
export const origin: Parse<string> = (text) => {
  const url = httpUrl(text);
  if (`${url.origin}/` !== url.href) throw new Problem('must be an origin, as in https://relay.example');
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:]+\])$/.test(url.hostname)) {
    throw new Problem('must have a host of letters, digits, dots and hyphens, or an address');
  }
  return url.origin;
};

/** An http or https URL; credentials in it are refused, they belong elsewhere. */
export const serviceUrl: Parse<string> = (text) => {
  const url = httpUrl(text);
  if (url.username !== '' || url.password !== '') throw new Problem('must hold no user and password');
  return url.href.replace(/\/$/, '');
};

function httpUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Problem('must be an http or https URL');
  return url;
}

/** `schemes`: without colon. The rest is the driver's to read. */
export const connectionString =
  (schemes: readonly string[], example: string): Parse<string> =>
  (text) => {
    const [scheme = '', rest = ''] = text.split('://', 2);
    if (schemes.includes(scheme.toLowerCase()) && /^[^\s]+$/.test(rest)) return text;
    throw new Problem(`must be a connection string, as in ${example}`);
  };

const POSTGRES_EXAMPLE = 'postgres://user:password@host:5432/name';
const postgresString = connectionString(['postgres', 'postgresql'], POSTGRES_EXAMPLE);

/** Refuses what the driver would misread without an error. Several hosts are separated by commas. */
export const databaseUrl: Parse<string> = (text) => {
  const url = postgresString(text);
  const parameters = readPostgresUrl(url);
  if ('problem' in parameters) throw new Problem(parameters.problem);
  const { rootCert, cert, key } = parameters;
  for (const [name, path] of Object.entries({ sslrootcert: rootCert, sslcert: cert, sslkey: key }))
    if (path !== null && !isReadable(path))
      throw new Problem(`names a file by its ${name} that cannot be read`);
  const [authority = ''] = url.slice(url.indexOf('://') + '://'.length).split(/[/?#]/);
  const hosts = authority.slice(authority.lastIndexOf('@') + 1);
  const parsed = URL.parse(url.replace(hosts, hosts.split(',')[0] ?? ''));
  if (parsed !== null && [parsed.username, parsed.password].every(isDecodable)) return url;
  throw new Problem(`must have user and password percent-encoded, as in ${POSTGRES_EXAMPLE}`);
};

function isReadable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** `*.example.com` or `example.com`, lower case, in punycode; an IP address in its standard text. */
export const hostPattern: Parse<string> = (text) => {
  const wild = text.startsWith('*.') ? '*.' : '';
  const host = URL.parse(`https://${text.slice(wild.length)}`);
  const bare = host !== null && host.href === `https://${host.hostname}/` ? host.hostname : '';
  const name = bare.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (isHostName(name) || (wild === '' && isIP(name) !== 0)) return wild + name;
  throw new Problem('must list host names, as in example.com or *.example.com');
};

/** `10.0.0.0/8`, `fd00::/8`, or a single address. */
export const cidr: Parse<string> = (text) => {
  const [address = '', prefix, ...rest] = text.split('/');
  const bits = isIPv4(address) ? 32 : 128;
  const prefixGood = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  if (isAddress(address) && prefixGood && rest.length === 0) {
    return `${address.toLowerCase()}/${Number(prefix ?? bits)}`;
  }
  throw new Problem('must list address ranges, as in 10.0.0.0/8 or fd00::/8');
};

/** `2001:db8:64::/96`: RFC 6052 §2.2. */
export const nat64Prefix: Parse<string> = (text) => {
  const read = /^[^/]+\/\d+$/.test(text) ? cidr(text) : '';
  const [address = '', prefix] = read.split('/');
  if (isIPv6(address) && isNat64Prefix({ bytes: ipv6Bytes(address), prefix: Number(prefix) })) return read;
  throw new Problem('must be an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, as in 2001:db8:64::/96');
};

function ipv6Bytes(address: string): number[] {
  const [head = [], tail = []] = new URL(`http://[${address}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

/** `1.1.1.1`, `1.1.1.1:53`, `[2606:4700::1111]`, `[2606:4700::1111]:53`; as `Resolver.setServers` takes them. */
export const dnsServer: Parse<string> = (text) => {
  const [, v6, v4, port = '53'] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const good = v6 === undefined ? isIPv4(v4 ?? '') : isAddress(v6) && !isIPv4(v6);
  if (good && Number(port) >= 1 && Number(port) <= 65535)
    return `${v6 === undefined ? v4 : `[${v6}]`}:${Number(port)}`;
  throw new Problem('must list IP addresses, each with or without :port, IPv6 in brackets');
};

/** The content of a PEM file, every certificate in it read once. */
export const certificatesFile: Parse<string> = (path) => {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch {
    throw new Problem('names a file that cannot be read');
  }
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0 || !blocks.every(isCertificate))
    throw new Problem('names a file without PEM certificates');
  return pem;
};

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** CAIP-2, of the kind that the payment scheme supports. */
export const evmNetwork: Parse<string> = (text) => {
  if (!/^eip155:[1-9]\d{0,14}$/.test(text)) throw new Problem('must be a CAIP-2 id, as in eip155:8453');
  return text;
};

export const evmAddress: Parse<string> = (text) => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text) || /^0x0{40}$/.test(text)) {
    throw new Problem('must be an address of 0x and 40 hex digits, and not the zero address');
  }
  if (checksumState(text) === 'wrong')
    throw new Problem('has a wrong checksum (EIP-55), so that at least one character differs: copy it again');
  return text;
};

/** Order of secp256k1 (SEC 2, 2.4.1): a private key is less. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

export const privateKey: Parse<`0x${string}`> = (text) => {
  const digits = /^0x([0-9a-fA-F]{64})$/.exec(text)?.[1];
  const number = digits === undefined ? 0n : BigInt(`0x${digits}`);
  if (number === 0n || number >= CURVE_ORDER)
    throw new Problem('must be a private key of 0x and 64 hex digits');
  return `0x${digits}`;
};

/** US dollars, `$0.003` or `0.003`, at most six places (USDC has no more); without the sign. */
export const usdPrice: Parse<string> = (text) => {
  const amount = text.replace(/^\$/, '');
  if (!/^\d{1,9}(\.\d{1,6})?$/.test(amount) || Number(amount) === 0) {
    throw new Problem('must be a price over zero with at most six places, as in $0.003');
  }
  return amount;
};

const isAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes('%');

/** RFC 1123: labels of letters, digits and inner hyphens; a last label of digits alone would be an address. */
const isHostName = (text: string): boolean =>
  text.length <= 253 &&
  /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(text) &&
  !/(^|\.)\d+$/.test(text);
