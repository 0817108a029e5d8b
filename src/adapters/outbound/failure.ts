// What an error of a connection means: its category, and its reason by a name that is the same under every runtime.
import type { X509Certificate } from 'node:crypto';
import type { Phase } from '#src/domain/event-fields.ts';
import type { FailureReason } from '#src/domain/failure-reasons.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { AttemptFailed } from './attempt.ts';

/** Codes of a connection that was lost or never made; in the TLS phase every other error is a failure of the handshake. */
const CONNECTION: Readonly<Record<string, FailureReason>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  ETIMEDOUT: 'timed_out',
  ENETUNREACH: 'no_route',
  EHOSTUNREACH: 'no_route',
  ENETDOWN: 'no_route',
  EHOSTDOWN: 'no_route',
  EADDRNOTAVAIL: 'no_route',
};

/** Of OpenSSL, which Deno uses too where it has more than one for a fault. */
const TLS: Readonly<Record<string, FailureReason>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unable_to_verify_leaf',
  UNABLE_TO_GET_ISSUER_CERT: 'unable_to_verify_leaf',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unable_to_verify_leaf',
  SELF_SIGNED_CERT_IN_CHAIN: 'unable_to_verify_leaf',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self_signed',
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'name_mismatch',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'no_common_protocol',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'no_common_protocol',
  ERR_SSL_WRONG_VERSION_NUMBER: 'not_tls',
  ERR_SSL_HTTP_REQUEST: 'not_tls',
  ERR_SSL_TLSV1_ALERT_CERTIFICATE_REQUIRED: 'client_certificate_required',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'client_certificate_required',
};

/** A failure of the connection before it was ready. `leaf`: the certificate of the peer, if it is known. */
export function connectFailure(error: unknown, phase: Phase, leaf: X509Certificate | null): AttemptFailed {
  const code = systemCode(error);
  const lost = code === null ? 'reset' : CONNECTION[code];
  if (lost !== undefined || phase === 'connect')
    return new AttemptFailed('connect_error', lost ?? 'connection_failed', error);
  const reason = tlsReason(error);
  const isUnknown = reason === 'unable_to_verify_leaf' && leaf !== null;
  return new AttemptFailed('tls_error', isUnknown ? untrustedReason(leaf) : reason, error);
}

/** Bun has this error also for a self-signed certificate that may sign no others, and for one that has expired as well. */
function untrustedReason(leaf: X509Certificate): FailureReason {
  if (leaf.subject === leaf.issuer) return 'self_signed';
  if (leaf.validToDate.getTime() < Date.now()) return 'expired';
  return leaf.validFromDate.getTime() > Date.now() ? 'not_yet_valid' : 'unable_to_verify_leaf';
}

function tlsReason(error: unknown): FailureReason {
  const code = systemCode(error) ?? '';
  const message = error instanceof Error ? error.message : '';
  // Deno uses the code for most errors.
  if (code === 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE')
    return /HANDSHAKE_FAILURE|HandshakeFailure|peer is incompatible/.test(message)
      ? 'no_common_protocol'
      : 'handshake_failed';
  return TLS[code] ?? 'handshake_failed';
}

/** A failure after the request was written: an error of TLS, or the connection ended too early. */
export function exchangeFailure(error: unknown): AttemptFailed {
  const code = systemCode(error) ?? '';
  return code.startsWith('ERR_SSL') || code === 'EPROTO'
    ? new AttemptFailed('tls_error', tlsReason(error), error)
    : new AttemptFailed('truncated_response', 'closed_early', error);
}
