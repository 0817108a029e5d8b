// The public signing keys, active and retired: as a JWK set, and as a DID document (W3C DID Core 1.0, method did:web) for
// those who resolve `kid` as a DID URL.
import { ROUTES } from '#src/discovery/routes.ts';
import { DIRECTORY_TYPE, directorySignatures } from '#src/domain/destination/message-signature.ts';
import { toBase64 } from '#src/domain/encoding.ts';
import { didKeyId, didOf, type Jwk, type JwkSet } from '#src/domain/signing-keys/keys.ts';
import type { Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { json } from '#src/http/response/json.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import type { AgentKeyRecord } from '#src/ports/signer.ts';

/** A key that was activated a moment ago is found soon. */
const CACHE_KEYS = { 'cache-control': 'public, max-age=60' } as const;

export type KeyDeps = Settings<'baseUrl'> & {
  jwks(): Promise<JwkSet>;
  /** Those that sign outbound requests; empty: none are signed. */
  agentKeys(): readonly AgentKeyRecord[];
  readonly clock: Pick<Clock, 'now'>;
  readonly entropy: Pick<Entropy, 'bytes'>;
};

export function keyRoutes(deps: KeyDeps): Endpoint[] {
  const { settings, jwks, clock } = deps;
  const directory = agentDirectory(deps);
  const { hostname, port } = new URL(settings.baseUrl);
  const did = didOf(hostname, port);
  return [
    endpoint(ROUTES.jwks, null, async () => json(200, await jwks(), CACHE_KEYS)),
    endpoint(ROUTES.did, null, async () => {
      const { keys } = await jwks();
      return json(200, documentOf(did, keys, clock.now()), CACHE_KEYS);
    }),
    endpoint(ROUTES.agentDirectory, null, directory),
  ];
}

/** A signed answer is repeated for this long, since anyone may ask for it. */
const DIRECTORY_MS = 30_000;

/** The keys that verify outbound requests, signed by each of them (draft-ietf-webbotauth-httpsig-protocol). */
function agentDirectory({ settings, agentKeys, clock, entropy }: KeyDeps): () => Promise<Response> {
  const authority = new URL(settings.baseUrl).host;
  let held: {
    readonly atMs: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: object;
  } | null = null;
  return async () => {
    const nowMs = clock.now();
    if (held === null || Math.abs(nowMs - held.atMs) >= DIRECTORY_MS) {
      const records = agentKeys();
      const facts = { authority, created: Math.floor(nowMs / 1000), nonce: toBase64(entropy.bytes(64)) };
      const signatures = await directorySignatures(
        records.map(({ key }) => key),
        facts,
      );
      const headers = { ...CACHE_KEYS, 'content-type': DIRECTORY_TYPE, ...signatures };
      held = { atMs: nowMs, headers, body: { keys: records.map(agentJwk) } };
    }
    return json(200, held.body, held.headers);
  };
}

const agentJwk = ({ key: { keyId: kid, x }, notBefore: nbf, notAfter }: AgentKeyRecord) => ({
  kty: 'OKP',
  crv: 'Ed25519',
  kid,
  x,
  use: 'sig',
  nbf,
  ...(notAfter === null ? {} : { exp: notAfter }),
});

/** Every key there ever was, so that what it signed verifies; only those that may sign receipts now make assertions. */
function documentOf(did: string, keys: readonly Jwk[], nowMs: number) {
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: keys.map((key) => methodOf(did, key)),
    assertionMethod: keys.filter((key) => isActive(key, nowMs / 1000)).map(({ kid }) => didKeyId(did, kid)),
  };
}

/** The key's window and purpose as in the key set, and the window again in the terms of DID documents. */
function methodOf(did: string, { kty, crv, kid, x, purpose, nbf, exp, revokedAt }: Jwk) {
  return {
    id: didKeyId(did, kid),
    type: 'JsonWebKey2020',
    controller: did,
    ...(exp === undefined ? {} : { expires: instant(exp) }),
    ...(revokedAt === undefined ? {} : { revoked: instant(revokedAt) }),
    publicKeyJwk: { kty, crv, kid, x, use: 'sig', alg: 'EdDSA', purpose, nbf, exp, revokedAt },
  };
}

/** A dateTimeStamp (W3C Controlled Identifiers 1.0, section 2.2). */
const instant = (seconds: number) => iso(seconds * 1000);

/**
 * `at`: Unix seconds. A retirement that is announced takes effect later: the key signs until then. A checkpoint states
 * what is in a log, and asserts nothing about its contents.
 */
function isActive({ purpose = 'receipt', nbf = 0, exp, revokedAt }: Jwk, at: number): boolean {
  if (purpose !== 'receipt') return false;
  return nbf <= at && (exp === undefined || at <= exp) && (revokedAt === undefined || at < revokedAt);
}
