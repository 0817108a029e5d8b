// Why an attempt failed, in more detail than its category. The names are the same under every runtime, and a released one is never
// removed.
import { Type } from '@sinclair/typebox';
import type { ErrorCategory } from './event-fields.ts';

type Entry = {
  readonly category: ErrorCategory | 'target_*';
  readonly meaning: string;
  /** What helps. */
  readonly action: string;
};

const entry = (category: Entry['category'], meaning: string, action: string): Entry => ({
  category,
  meaning,
  action,
});

const LATER = 'Send it again later, as a new call.';
const TARGET = 'The operator of the target has to mend it.';
const CHECK_PORT = 'Check host and port, and that the target listens.';

export const FAILURE_REASONS = {
  name_not_found: entry('dns_error', 'The host name does not exist or has no address.', 'Correct the URL.'),
  dns_failed: entry('dns_error', 'The DNS servers of the name answered with an error.', LATER),
  dns_busy: entry('dns_error', 'The relay has too many look-ups in progress.', LATER),
  timed_out: entry(
    'timeout',
    'The time limit ended; `phase` is what was waited for.',
    'Raise timeoutMs, or mend the target.',
  ),
  connection_refused: entry(
    'connect_error',
    'No address of the host accepts connections on the port.',
    CHECK_PORT,
  ),
  no_route: entry('connect_error', 'No address of the host can be reached from the relay.', CHECK_PORT),
  reset: entry('connect_error', 'The target closed the connection before the request was sent.', TARGET),
  connection_failed: entry('connect_error', 'The connection could not be made for another reason.', LATER),
  unable_to_verify_leaf: entry(
    'tls_error',
    'No trusted authority is found for the certificate: an intermediate certificate is missing, or the issuer is private.',
    'Serve the whole chain, of a public authority.',
  ),
  self_signed: entry(
    'tls_error',
    'No authority has issued the certificate: it is self-signed.',
    'Use a certificate of a public authority.',
  ),
  expired: entry('tls_error', 'The certificate has expired.', 'Renew the certificate.'),
  not_yet_valid: entry('tls_error', 'The certificate is not valid yet.', TARGET),
  name_mismatch: entry(
    'tls_error',
    'The certificate is not for this host name.',
    'Correct the URL or the certificate.',
  ),
  no_common_protocol: entry(
    'tls_error',
    'The target supports neither TLS 1.2 nor TLS 1.3, or no common cipher.',
    TARGET,
  ),
  not_tls: entry('tls_error', 'The port does not speak TLS.', CHECK_PORT),
  client_certificate_required: entry(
    'tls_error',
    'The target requires a certificate of its client; the relay has none.',
    'Use another way to authenticate the call.',
  ),
  handshake_failed: entry('tls_error', 'The TLS handshake failed for another reason.', TARGET),
  malformed_response: entry(
    'protocol_error',
    'The response is not well-formed HTTP/1.1, or is ambiguous.',
    TARGET,
  ),
  response_head_too_large: entry(
    'protocol_error',
    'The head of the response, or the framing of its body, is too large.',
    TARGET,
  ),
  response_before_request: entry(
    'protocol_error',
    'The target answered before it could have read the request.',
    TARGET,
  ),
  protocol_switched: entry('protocol_error', 'The target answered 101.', TARGET),
  closed_early: entry('truncated_response', 'The connection ended before the response was complete.', TARGET),
  http_status: entry(
    'target_*',
    'The target answered with a status that is no success.',
    'Read responseStatus.',
  ),
  not_permitted: entry(
    'target_refused',
    'The rules of the relay do not permit the target, or an address of it.',
    'Call another target.',
  ),
  interrupted: entry(
    'interrupted_unknown',
    'The relay was interrupted; the target may have received the request.',
    'Ask the target; the payment is refundable.',
  ),
  not_executed: entry('not_executed', 'The relay was interrupted; nothing was sent.', LATER),
} as const satisfies Readonly<Record<string, Entry>>;

export type FailureReason = keyof typeof FAILURE_REASONS;

export const FAILURE_REASON_NAMES = Object.keys(FAILURE_REASONS) as readonly FailureReason[];

/** As an answer has it. */
export const FailureReasonShown = Type.Unsafe<FailureReason | null>(
  Type.Union([...FAILURE_REASON_NAMES.map((name) => Type.Literal(name)), Type.Null()], {
    description:
      'Why the attempt failed, in more detail than errorCategory: `attemptReasons` of /api/errors. null: it did not fail, or is of an older release.',
  }),
);
