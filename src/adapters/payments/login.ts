// The login at a facilitator: static headers, or a token for each request as Coinbase's developer platform (CDP) takes it.
import { randomBytes } from 'node:crypto';
import type { Clock } from '#src/ports/clock.ts';

/** A private key, as a JSON Web Key. */
type LoginKey = {
  readonly algorithm: 'EdDSA' | 'ES256';
  readonly jwk: Readonly<Record<'kty' | 'crv' | 'x' | 'd', string>> & { readonly y?: string };
};

export type FacilitatorLogin =
  | { readonly kind: 'cdp'; readonly keyId: string; readonly key: LoginKey }
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> };

export type LoginHeaders = (request: {
  readonly method: 'GET' | 'POST';
  readonly url: string;
}) => Promise<Readonly<Record<string, string>>>;

/** As in the provider's own package (@coinbase/cdp-sdk 1.57.0, auth/utils/jwt). */
const TOKEN_SECONDS = 120;

/** Whether what is sent to `url` can be read on its way: not by TLS, and beyond this machine. */
export function isCleartext(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** null: without a login. */
export async function loginHeaders(
  login: FacilitatorLogin | null,
  clock: Pick<Clock, 'now'>,
): Promise<LoginHeaders> {
  if (login === null) return async () => ({});
  if (login.kind === 'headers') return async () => login.headers;
  const { importJWK, SignJWT } = await import('jose');
  const { keyId, key } = login;
  const signingKey = await importJWK({ ...key.jwk }, key.algorithm);
  return async ({ method, url }) => {
    const { host, pathname } = new URL(url);
    const seconds = Math.floor(clock.now() / 1000);
    const claims = { sub: keyId, iss: 'cdp', uris: [`${method} ${host}${pathname}`] };
    // The nonce makes each token differ from all others: a facilitator may refuse one that it has seen.
    const nonce = randomBytes(16).toString('hex');
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: key.algorithm, kid: keyId, typ: 'JWT', nonce })
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(seconds + TOKEN_SECONDS)
      .sign(signingKey);
    return { authorization: `Bearer ${token}` };
  };
}
