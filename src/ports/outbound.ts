// One attempt: one outbound HTTPS request to a checked address, and its report.

import type { Target } from '#src/domain/destination/url.ts';
import type { ErrorCategory, Phase, Sent, Timings, Truncated } from '../domain/event-fields.ts';
import type { FailureReason } from '../domain/failure-reasons.ts';

export interface Outbound {
  /**
   * Resolves, checks all addresses and dials them in order until one connects, sends the request once, reads the response up to the limit,
   * and closes the connection, all within `timeoutMs` of the start of the attempt, or up to 100 ms later if the thread is busy.
   * Of many concurrent calls each turn of the event loop starts a few. Never follows a redirect, never retries. Every outcome
   * is a report. Throws `OutboundDefect`, and nothing else, for a defect of this program, which is no outcome.
   */
  send(request: OutboundRequest): Promise<AttemptReport>;
}

/** An attempt failed in this program, and not at the destination: `cause` says why. */
export class OutboundDefect extends Error {
  readonly sent: Sent;
  constructor(sent: Sent, cause: unknown) {
    super(`an outbound call failed in this program (sent: ${sent})`, { cause });
    this.name = 'OutboundDefect';
    this.sent = sent;
  }
}

export type OutboundRequest = {
  readonly target: Target;
  readonly method: string;
  /** Final, in order; without Host, Content-Length and Connection, which the adapter sets. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Exact bytes on the wire; null: no body. */
  readonly body: Uint8Array | null;
  readonly timeoutMs: number;
  /** Whether the caller gets what the target answers; absent: it is hashed, and not kept. */
  readonly keepsResponse?: boolean;
};

/** What a target answered, as far as it was read. For its caller alone: never stored, logged or traced. */
export type TargetResponse = {
  readonly status: number;
  /** Content-Type, Retry-After and what the operator allows, where it has them: names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly truncated: Truncated;
};

export type AttemptReport = {
  readonly phase: Phase;
  readonly sent: Sent;
  /** The final status line's code; null if none arrived. */
  readonly status: number | null;
  /** null only for a complete 2xx response (a body cut at the relay's own limit counts as complete). */
  readonly errorCategory: ErrorCategory | null;
  /** null exactly if `errorCategory` is. */
  readonly reason: FailureReason | null;
  readonly timings: Timings;
  /** As in `TLSv1.3`; null before the handshake. */
  readonly tlsVersion: string | null;
  /** true if a configured exemption allowed a non-public address. */
  readonly exempted: boolean;
  /** The address dialled last; null if none was. */
  readonly address: string | null;
  /** SHA-256 of the leaf certificate's DER, lower-case hex. */
  readonly leafSha256: string | null;
  /** Bytes of the body read; null if no response arrived. */
  readonly responseBytes: number | null;
  /** SHA-256 of the bytes read, lower-case hex. */
  readonly responseBodySha256: string | null;
  /**
   * true: the body is longer than the limit. `unknown`: it ended with the connection, and the peer did not say that this is
   * its end (TLS close_notify), so that anyone on the way may have cut it (RFC 9112 §9.8).
   */
  readonly truncated: Truncated;
  /** Retry-After (RFC 9110 §10.2.3) in ms from now; null if absent or unreadable. */
  readonly retryAfterMs: number | null;
  /** The target requests no further attempts (410, or `webhook-delivery: abort-message`). */
  readonly abort: boolean;
  /** null: none arrived, or none was to be kept. */
  readonly response: TargetResponse | null;
};
