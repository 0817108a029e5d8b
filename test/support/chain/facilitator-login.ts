// The login at a facilitator, as the facilitator checks it: a token of CDP's form, which is verified with the public key
// alone and accepted once; or static headers. Also API keys in the forms in which CDP issues them.
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { decodeProtectedHeader, importJWK, type JWK, jwtVerify } from 'jose';

export type ApiKey = {
  readonly kind: 'ed25519' | 'sec1' | 'pkcs8';
  readonly algorithm: 'EdDSA' | 'ES256';
  readonly id: string;
  /** As CDP_API_KEY_SECRET takes it. */
  readonly secret: string;
  readonly publicKey: JWK;
};

export const API_KEY_KINDS = ['ed25519', 'sec1', 'pkcs8'] as const;

/** `id`: a UUID unless it is given. */
export function newApiKey(kind: ApiKey['kind'], id: string = randomUUID()): ApiKey {
  if (kind === 'ed25519') {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
    const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]);
    return { kind, algorithm: 'EdDSA', id, secret: bytes.toString('base64'), publicKey: jwkOf(publicKey) };
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const secret = String(privateKey.export({ type: kind, format: 'pem' }));
  return { kind, algorithm: 'ES256', id, secret, publicKey: jwkOf(publicKey) };
}

const jwkOf = (key: KeyObject) => key.export({ format: 'jwk' }) as JWK;

/** The variables of the service that log in with this key. */
export const environmentOf = ({ id, secret }: ApiKey) => ({
  X402_FACILITATOR_AUTH: 'cdp',
  CDP_API_KEY_ID: id,
  CDP_API_KEY_SECRET: secret,
});

export type Guard = {
  /** Why the request is refused; null: it is logged in. */
  check(request: IncomingMessage): Promise<string | null>;
  /** The login of every request, accepted or not. */
  readonly seen: readonly string[];
};

const CLAIMS = ['exp', 'iat', 'iss', 'nbf', 'sub', 'uris'];

/** `keys`: those that are accepted now. `now`: in ms. */
export function cdpGuard(keys: () => readonly ApiKey[], now: () => number = Date.now): Guard {
  const seen: string[] = [];
  const nonces = new Set<string>();

  async function verify({ headers, method, url }: IncomingMessage): Promise<void> {
    const token = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    seen.push(token);
    const { kid, nonce, typ, alg, ...rest } = decodeProtectedHeader(token);
    const key = keys().find(({ id }) => id === kid);
    if (key === undefined) throw new Error('no such key');
    if (typ !== 'JWT' || Object.keys(rest).length > 0) throw new Error('another header');
    const { payload } = await jwtVerify(token, await importJWK(key.publicKey, key.algorithm), {
      algorithms: [key.algorithm],
      issuer: 'cdp',
      subject: key.id,
      currentDate: new Date(now()),
    });
    if (Object.keys(payload).sort().join() !== CLAIMS.join()) throw new Error('other claims');
    const { exp = 0, nbf, iat = 0, uris } = payload;
    if (exp - iat !== 120 || nbf !== iat) throw new Error('another lifetime');
    const path = (url ?? '').split('?')[0];
    if (JSON.stringify(uris) !== JSON.stringify([`${method} ${headers.host}${path}`]))
      throw new Error('a token for another request');
    if (typeof nonce !== 'string' || !/^[0-9a-f]{32}$/.test(nonce)) throw new Error('no nonce');
    if (nonces.has(nonce)) throw new Error('a token that was used before');
    nonces.add(nonce);
  }

  return {
    seen,
    check: (request) =>
      verify(request).then(
        () => null,
        (error: Error) => error.message,
      ),
  };
}

/** `headers`: those that are demanded now; names in lower case. */
export function headersGuard(headers: () => Readonly<Record<string, string>>): Guard {
  const seen: string[] = [];
  return {
    seen,
    async check(request) {
      const demanded = Object.entries(headers());
      seen.push(demanded.map(([name]) => request.headers[name] ?? '').join(' '));
      return demanded.every(([name, value]) => request.headers[name] === value) ? null : 'another key';
    },
  };
}

/** The body of a refused login: it repeats what it was sent, as a careless facilitator does. */
export const refusalOf = (reason: string, { headers }: IncomingMessage): string =>
  JSON.stringify({ errorType: 'unauthorized', errorMessage: reason, request: headers });
