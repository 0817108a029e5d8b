// A local certificate authority (RFC 5280, ECDSA P-256) for targets on this machine, in the demo and in tests. It is
// trusted only where its root is configured; it stores and revokes nothing.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';

// DER (X.690 §8, §10): the encodings that a certificate needs.

type Bytes = Uint8Array<ArrayBufferLike>;

const TAG = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const;

/** Tag, length, content. */
function der(tag: number, ...content: readonly Bytes[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(evenHex(body.length), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

const sequence = (...content: readonly Bytes[]): Buffer => der(0x30, ...content);
const set = (...content: readonly Bytes[]): Buffer => der(0x31, ...content);
/** `[n]` EXPLICIT. */
const explicit = (n: number, content: Bytes): Buffer => der(0xa0 | n, content);
/** `[n]` IMPLICIT over a primitive. */
const implicit = (n: number, content: Bytes): Buffer => der(0x80 | n, content);
const boolean = (value: boolean): Buffer => Buffer.from([0x01, 0x01, value ? 0xff : 0x00]);

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime up to 2049, GeneralizedTime after (RFC 5280 §4.1.2.5). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`;
  return date.getUTCFullYear() < 2050
    ? der(TAG.utcTime, Buffer.from(digits.slice(2)))
    : der(TAG.generalizedTime, Buffer.from(digits));
}

function base128(value: number): number[] {
  const groups = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) groups.unshift(0x80 | (rest & 0x7f));
  return groups;
}

function evenHex(value: number): string {
  const hex = value.toString(16);
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}

/** PEM texts, as `tls.createServer({ cert, key })` takes them. */
export type Identity = { readonly cert: string; readonly key: string };

export type LeafOptions = {
  /** DNS names (also `*.example.com`) and IP addresses. */
  readonly names: readonly string[];
  /** Of the subject; no client may take it for one of the names. */
  readonly commonName?: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
};

export type LocalCa = {
  /** PEM of the root certificate, as EGRESS_CA_FILE contains it. */
  readonly pem: string;
  issue(options: LeafOptions): Identity;
};

type Validity = { readonly notBefore: Date; readonly notAfter: Date };
type KeyPair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
type Subject = { readonly name: string; readonly keys: KeyPair };

const ECDSA_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));

/** `name`: the root's common name. */
export function makeLocalCa(name: string, validity: Validity): LocalCa {
  const root = { name, keys: makeKeys() };
  return {
    pem: certificate(root, root, validity, authorityExtensions(root.keys.publicKey)),
    issue(options) {
      const leaf = { name: options.commonName ?? 'local target', keys: makeKeys() };
      return identity(leaf, certificate(leaf, root, options, leafExtensions(options.names, root)));
    },
  };
}

/** A self-signed end-entity certificate. */
export function makeSelfSigned(options: LeafOptions): Identity {
  const self = { name: 'self-signed target', keys: makeKeys() };
  return identity(self, certificate(self, self, options, leafExtensions(options.names, self)));
}

function identity(subject: Subject, cert: string): Identity {
  return { cert, key: subject.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function makeKeys(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/** Certificate of `subject`, signed by `issuer` (RFC 5280 §4.1), as PEM. */
function certificate(subject: Subject, issuer: Subject, validity: Validity, extensions: Buffer[]): string {
  const body = sequence(
    explicit(0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, serialNumber()),
    ECDSA_SHA256,
    commonName(issuer.name),
    sequence(time(validity.notBefore), time(validity.notAfter)),
    commonName(subject.name),
    publicKeyInfo(subject.keys.publicKey),
    explicit(3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, issuer.keys.privateKey);
  const whole = sequence(body, ECDSA_SHA256, bitString(signature)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${whole.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

function authorityExtensions(publicKey: KeyObject): Buffer[] {
  return [
    extension('2.5.29.19', true, sequence(boolean(true))),
    // keyCertSign and cRLSign
    extension('2.5.29.15', true, Buffer.from([TAG.bitString, 2, 1, 0x06])),
    extension('2.5.29.14', false, der(TAG.octetString, keyId(publicKey))),
  ];
}

function leafExtensions(names: readonly string[], issuer: Subject): Buffer[] {
  return [
    extension('2.5.29.19', true, sequence()),
    // digitalSignature
    extension('2.5.29.15', true, Buffer.from([TAG.bitString, 2, 7, 0x80])),
    // serverAuth
    extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, sequence(...names.map(generalName))),
    // The issuer's key id: two roots may have the same name.
    extension('2.5.29.35', false, sequence(implicit(0, keyId(issuer.keys.publicKey)))),
  ];
}

/** RFC 5280 §4.2.1.2, method 1: SHA-1 of the key's bits. */
function keyId(publicKey: KeyObject): Buffer {
  return createHash('sha1').update(publicKeyInfo(publicKey).subarray(-65)).digest();
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), der(TAG.octetString, value));
}

/** dNSName [2] or iPAddress [7] (RFC 5280 §4.2.1.6). */
function generalName(name: string): Buffer {
  return isIP(name) === 0 ? implicit(2, Buffer.from(name, 'ascii')) : implicit(7, addressBytes(name));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [left = '', right = ''] = address.split('::');
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const gap = Array<number>(Math.max(0, 8 - groups(left).length - groups(right).length)).fill(0);
  return Buffer.from(
    [...groups(left), ...gap, ...groups(right)].flatMap((group) => [group >> 8, group & 0xff]),
  );
}

function commonName(name: string): Buffer {
  return sequence(set(sequence(oid('2.5.4.3'), der(TAG.utf8String, Buffer.from(name)))));
}

function publicKeyInfo(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

function bitString(bytes: Buffer): Buffer {
  return der(TAG.bitString, Buffer.from([0]), bytes);
}

/** 16 random bytes, positive and without leading zeros (RFC 5280 §4.1.2.2). */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}
