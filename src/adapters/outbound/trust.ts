// Which certificates an outbound call trusts: one TLS context for all calls, made once.
import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * The runtime's default roots and those of `extraPem` (EGRESS_CA_FILE's content; null: none). TLS 1.2 is the least:
 * it must be said here, because beside a context Bun ignores it. Throws where `extraPem` holds no certificate or a
 * broken one.
 */
export function outboundTlsContext(extraPem: string | null): SecureContext {
  const extra = extraPem === null ? [] : readCertificates(extraPem);
  return createSecureContext({ ca: [...getCACertificates('default'), ...extra], minVersion: 'TLSv1.2' });
}

/** Every certificate of a PEM file, each as a PEM text of its own. */
export function readCertificates(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('no PEM certificate found');
  return blocks.map((block) => new X509Certificate(block).toString());
}
