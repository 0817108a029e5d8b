// A local certificate authority (RFC 5280, ECDSA P-256) for targets on this machine, in the demo and in tests. It is
// trusted only where its root is configured; it stores and revokes nothing.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import ipaddr from 'ipaddr.js';

/** DER (X.690 §8, §10): tag, length, content. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const long = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...(length < 0x80 ? [length] : long)]), body]);
}

const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);
const octets = (content: Uint8Array): Buffer => der(0x04, content);
const bits = (unused: number, content: Uint8Array): Buffer => der(0x03, Buffer.from([unused]), content);
const TRUE = Buffer.from('0101ff', 'hex');
/** `[n]` EXPLICIT. */
const explicit = (n: number, content: Uint8Array): Buffer => der(0xa0 | n, content);
/** `[n]` IMPLICIT over a primitive. */
const implicit = (n: number, content: Uint8Array): Buffer => der(0x80 | n, content);

/** Object identifiers, encoded. */
const OID = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  subjectKeyIdentifier: '551d0e',
  keyUsage: '551d0f',
  subjectAltName: '551d11',
  basicConstraints: '551d13',
  authorityKeyIdentifier: '551d23',
  extKeyUsage: '551d25',
  serverAuth: '2b06010505070301',
} as const;
const oid = (name: keyof typeof OID): Buffer => der(0x06, Buffer.from(OID[name], 'hex'));

/** UTCTime: up to 2049 (RFC 5280 §4.1.2.5). */
const time = (date: Date): Buffer =>
  der(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replace(/[-T:]/g, '')}Z`));

/** PEM texts, as `tls.createServer({ cert, key })` takes them. */
export type Identity = { readonly cert: string; readonly key: string };

type Validity = { readonly notBefore: Date; readonly notAfter: Date };

export type LeafOptions = Validity & {
  /** DNS names (also `*.example.com`) and IP addresses. */
  readonly names: readonly string[];
  /** Of the subject; no client may take it for one of the names. */
  readonly commonName?: string;
};

export type LocalCa = {
  /** PEM of the root certificate, as EGRESS_CA_FILE contains it. */
  readonly pem: string;
  issue(options: LeafOptions): Identity;
};

type Subject = {
  readonly name: string;
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
};

/** `name`: the root's common name. */
export function makeLocalCa(name: string, validity: Validity): LocalCa {
  const root = subject(name);
  return {
    pem: certificate(root, root, validity, [
      extension('basicConstraints', true, sequence(TRUE)),
      // keyCertSign and cRLSign
      extension('keyUsage', true, bits(1, Buffer.from([0x06]))),
      extension('subjectKeyIdentifier', false, octets(keyId(root))),
    ]),
    issue: (options) => leafOf(subject(options.commonName ?? 'local target'), options, root),
  };
}

/** A self-signed end-entity certificate. */
export function makeSelfSigned(options: LeafOptions): Identity {
  return leafOf(subject('self-signed target'), options);
}

const subject = (name: string): Subject => ({
  name,
  keys: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
});

function leafOf(leaf: Subject, options: LeafOptions, issuer = leaf): Identity {
  const cert = certificate(leaf, issuer, options, [
    extension('basicConstraints', true, sequence()),
    // digitalSignature
    extension('keyUsage', true, bits(7, Buffer.from([0x80]))),
    extension('extKeyUsage', false, sequence(oid('serverAuth'))),
    extension('subjectAltName', false, sequence(...options.names.map(generalName))),
    // The issuer's key id: two roots may have the same name.
    extension('authorityKeyIdentifier', false, sequence(implicit(0, keyId(issuer)))),
  ]);
  return { cert, key: leaf.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** Certificate of `of`, signed by `issuer` (RFC 5280 §4.1), as PEM. */
function certificate(subject: Subject, issuer: Subject, validity: Validity, extensions: Buffer[]): string {
  const algorithm = sequence(oid('ecdsaWithSha256'));
  const body = sequence(
    explicit(0, der(0x02, Buffer.from([2]))),
    der(0x02, serialNumber()),
    algorithm,
    commonName(issuer),
    sequence(time(validity.notBefore), time(validity.notAfter)),
    commonName(subject),
    publicKeyInfo(subject),
    explicit(3, sequence(...extensions)),
  );
  const signature = bits(0, sign('sha256', body, issuer.keys.privateKey));
  const whole = sequence(body, algorithm, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${whole.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

/** RFC 5280 §4.2.1.2, method 1: SHA-1 of the key's bits. */
const keyId = (of: Subject): Buffer => createHash('sha1').update(publicKeyInfo(of).subarray(-65)).digest();

const extension = (id: keyof typeof OID, critical: boolean, value: Buffer): Buffer =>
  sequence(oid(id), ...(critical ? [TRUE] : []), octets(value));

/** dNSName [2] or iPAddress [7] (RFC 5280 §4.2.1.6). */
const generalName = (name: string): Buffer =>
  ipaddr.isValid(name)
    ? implicit(7, Buffer.from(ipaddr.parse(name).toByteArray()))
    : implicit(2, Buffer.from(name, 'ascii'));

const commonName = ({ name }: Subject): Buffer =>
  sequence(der(0x31, sequence(oid('commonName'), der(0x0c, Buffer.from(name)))));

const publicKeyInfo = ({ keys }: Subject): Buffer => keys.publicKey.export({ type: 'spki', format: 'der' });

/** 16 random bytes, positive and without leading zeros (RFC 5280 §4.1.2.2). */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}
