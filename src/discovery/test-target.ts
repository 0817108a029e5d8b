// The canary in words: calling it is free, having it called is a call like any other.
import { isOwnTarget } from '#src/discovery/documents/document-parts.ts';
import type { Facts } from './facts.ts';
import { ROUTES } from './routes.ts';

/** Of POST: a request by GET is no execution's. */
export function testTarget(facts: Facts): string {
  const direct = `POST ${ROUTES.canaryPost.path} is free to call directly: it answers with what arrived.`;
  return isOwnTarget(facts) ? `${direct} ${AS_TARGET}` : direct;
}

const AS_TARGET =
  'As the target of an execution it is the one address of this service that may be called, where no EGRESS_DENY_CIDRS ' +
  'range holds it (the policy check tells), and costs what any call costs.';
