// One call in hand: what is known of it before any route is, and the headers that whatever answer it gets will carry.

import type { Seen } from '#src/http/instrumentation.ts';
import type { Entropy } from '#src/ports/clock.ts';

export type Call = {
  /** The caller's x-request-id where it is well-formed, else ours. */
  readonly id: string;
  /** The client's address as rate limits count it; see client-address.ts. */
  readonly client: string;
  /** Set on the answer, also where that is an error thrown from anywhere. */
  readonly headers: Headers;
  /** What operators will see of it. */
  readonly seen: Seen;
};

/** Elysia hands every hook and handler the very request that it was given: what belongs to it is found by it. */
const calls = new WeakMap<Request, Call>();

export function beginCall(request: Request, call: Call): void {
  calls.set(request, call);
}

export function callOf(request: Request): Call {
  const call = calls.get(request);
  if (call === undefined) throw new Error('the request did not come in by the front door');
  return call;
}

const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/;

export function requestId(given: string | null, entropy: Entropy): string {
  return given !== null && WELL_FORMED.test(given) ? given : entropy.uuid();
}
