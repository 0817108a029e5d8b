// The name under which the signing keys are published: a did:web (W3C DID method `web`) of the service's host.

/** `host`: a host name without port; `port`: as in the URL, empty for the scheme's default. */
export function didOf(host: string, port: string): string {
  // Within the identifier a colon separates path segments: the colons of a port and of an IPv6 address are encoded.
  const name = host.replaceAll('[', '%5B').replaceAll(']', '%5D').replaceAll(':', '%3A');
  return port === '' ? `did:web:${name}` : `did:web:${name}%3A${port}`;
}

/** The DID URL of one key: the `kid` of a JWS whose reader resolves DIDs. */
export const didKeyId = (did: string, keyId: string): string => `${did}#${keyId}`;
