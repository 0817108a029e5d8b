// The name under which the signing keys are published: a did:web (W3C DID method `web`) of the service's host.

/** `host`: a host name without port; `port`: as in the URL, empty where the scheme's own holds. */
export function didOf(host: string, port: string): string {
  // Within the identifier a colon separates path segments: the port's is encoded, and so are those of an IPv6 address.
  const name = host.replaceAll('[', '%5B').replaceAll(']', '%5D').replaceAll(':', '%3A');
  return port === '' ? `did:web:${name}` : `did:web:${name}%3A${port}`;
}

/** The DID URL of one key: what a JWS names as `kid` where its reader resolves DIDs. */
export const didKeyId = (did: string, keyId: string): string => `${did}#${keyId}`;
