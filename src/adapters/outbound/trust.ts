// Which certificates an outbound call trusts: one TLS context for all calls, made once.
import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * For all calls. TLS 1.2 is the least: it must be said here, because beside a context Bun ignores it. `extraPem`:
 * EGRESS_CA_FILE's content, or null: then the runtime's own store is used as it is, because Deno reads a list of
 * roots anew for each connection (10 ms and 1 MB). Throws where `extraPem` holds no certificate or a broken one.
 */
export function outboundTlsContext(extraPem: string | null): SecureContext {
  const roots = extraPem === null ? {} : { ca: rootsWith(extraPem) };
  return createSecureContext({ ...roots, minVersion: 'TLSv1.2' });
}

/** The runtime's default roots (a list of one's own replaces them), then those of `extraPem`. */
export function rootsWith(extraPem: string): string[] {
  return [...getCACertificates('default'), ...readCertificates(extraPem)];
}

/** Every certificate of a PEM file, each as a PEM text of its own. */
export function readCertificates(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('no PEM certificate found');
  return blocks.map((block) => new X509Certificate(block).toString());
}
