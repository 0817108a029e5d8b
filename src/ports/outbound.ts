// One attempt: one outbound HTTPS request to a checked address, and what came of it.

import type { Target } from '#src/domain/destination/url.ts';
import type { ErrorCategory, Phase, Sent, Timings } from '../domain/event-fields.ts';

export interface Outbound {
  /**
   * Resolves, checks and dials exactly one address, sends the request once, reads the answer up to the cap, and
   * closes the connection. Everything within `timeoutMs` of the call. Never follows a redirect, never retries,
   * never throws: whatever happens is a report.
   */
  send(request: OutboundRequest): Promise<AttemptReport>;
}

export type OutboundRequest = {
  readonly target: Target;
  readonly method: string;
  /** Final, in order; without Host, Content-Length and Connection, which are the adapter's. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Exact bytes on the wire; null: no body. */
  readonly body: Uint8Array | null;
  readonly timeoutMs: number;
};

export type AttemptReport = {
  readonly phase: Phase;
  readonly sent: Sent;
  /** The final status line's code; null where none came. */
  readonly status: number | null;
  /** null only for a complete 2xx answer (a body cut at our own cap counts as complete). */
  readonly errorCategory: ErrorCategory | null;
  readonly timings: Timings;
  /** As in `TLSv1.3`; null before the handshake. */
  readonly tlsVersion: string | null;
  /** true where a configured exemption let a non-public address through. */
  readonly exempted: boolean;
  /** The address dialled; null where none was. */
  readonly address: string | null;
  /** SHA-256 of the leaf certificate's DER, lower-case hex. */
  readonly leafSha256: string | null;
  /** Bytes of the body read; null where no response came. */
  readonly responseBytes: number | null;
  /** SHA-256 of the bytes read, lower-case hex. */
  readonly responseBodySha256: string | null;
  /** The body went on past the cap. */
  readonly truncated: boolean;
  /** Retry-After (RFC 9110 §10.2.3) in ms from now; null where absent or unreadable. */
  readonly retryAfterMs: number | null;
  /** The target asked for no more (410, or `webhook-delivery: abort-message`). */
  readonly abort: boolean;
};
