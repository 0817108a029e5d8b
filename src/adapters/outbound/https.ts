// The outbound HTTPS call: one look-up, checked addresses, one connection, one request, one report.
import type { SecureContext } from 'node:tls';
import type { Dial } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { withTimeout } from '#src/lib/time.ts';
import { categoryOfStatus } from '../../domain/job/retry.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Outbound, OutboundDefect, type OutboundRequest } from '../../ports/outbound.ts';
import type { Resolution, Resolver } from '../../ports/resolver.ts';
import {
  type Attempt,
  AttemptFailed,
  type AttemptFailure,
  newAttempt,
  notPermitted,
  reportOf,
  timedOut,
} from './attempt.ts';
import { type Connection, openConnection } from './connection.ts';
import { exchange } from './exchange.ts';
import { ReadTurns } from './read-turns.ts';

export type OutboundParts = {
  /** Queries DNS each time, without a cache. */
  readonly resolver: Resolver;
  /** The destination policy without DNS: text, name, port and lists. The rules may have changed since the job was accepted. */
  readonly permits: (target: Target) => boolean;
  /** The addresses to dial, in order, among all addresses of a name; none if one of them may not be dialled. */
  readonly chooseDials: (target: Target, addresses: readonly string[]) => readonly Dial[];
  readonly secureContext: SecureContext;
  /** Of a kept response: names in lower case. */
  readonly keptHeaders: readonly string[];
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
};

export function httpsOutbound(parts: OutboundParts): Outbound {
  const turns = new ReadTurns(parts.clock.monotonic);
  return {
    async send(request) {
      await turns.step();
      const attempt = newAttempt(parts.clock.monotonic, request.timeoutMs);
      const report = reportOf(attempt, await run(parts, turns, request, attempt));
      await turns.step();
      return report;
    },
  };
}

/** Returns null for a complete 2xx response. One time limit covers look-up, connection, handshake, headers and body. */
async function run(
  parts: OutboundParts,
  turns: ReadTurns,
  request: OutboundRequest,
  attempt: Attempt,
): Promise<AttemptFailure | null> {
  let connection: Connection | null = null;
  let over = false;
  const assertTimeLeft = () => {
    if (over) throw timedOut();
  };
  const open = (dial: Dial) => {
    assertTimeLeft();
    connection?.destroy();
    connection = openConnection(request.target, dial, parts.secureContext, turns, attempt);
    return connection;
  };
  const steps = async () => {
    const dials = await findAddresses(parts, request, attempt);
    const opened = await connectOne(dials, open, () => request.timeoutMs - attempt.total());
    await opened.ready;
    assertTimeLeft();
    await exchange(request, opened, attempt, { keptHeaders: parts.keptHeaders, now: parts.clock.now });
  };
  try {
    await withTimeout(steps(), request.timeoutMs, timedOut);
    const category = categoryOfStatus(attempt.status ?? 0);
    return category && { category, reason: 'http_status' };
  } catch (error) {
    if (error instanceof AttemptFailed) return error;
    throw new OutboundDefect(attempt.sent, error);
  } finally {
    over = true;
    // TypeScript does not see the assignment in `steps`.
    (connection as Connection | null)?.destroy();
  }
}

/** A name may have many addresses, of other parties too. */
const DIALS_MAX = 8;
/** Long enough for a lost packet to be sent again, which the kernel does after 1 s. */
const DIAL_MS_MAX = 2000;

/**
 * Dials one address after the other until one accepts the connection. A silent one has its share of the time, of which the last
 * address and the exchange with it have the rest. Throws the first failure that says more than that this machine has no IPv6.
 */
async function connectOne(
  dials: readonly Dial[],
  open: (dial: Dial) => Connection,
  leftMs: () => number,
): Promise<Connection> {
  const failures: AttemptFailed[] = [];
  const tried = dials.slice(0, DIALS_MAX);
  for (const [at, dial] of tried.entries()) {
    const isLast = at === tried.length - 1;
    const shareMs = Math.min(DIAL_MS_MAX, leftMs() / (tried.length - at + 1));
    const connection = open(dial);
    try {
      const connected = connection.connected();
      await (isLast ? connected : withTimeout(connected, shareMs, timedOut));
      return connection;
    } catch (error) {
      if (!(error instanceof AttemptFailed)) throw error;
      failures.push(error);
    }
  }
  throw failures.find(({ reason }) => reason !== 'no_route') ?? failures[0] ?? notPermitted();
}

function lookUpFailure(resolution: Exclude<Resolution, { outcome: 'addresses' }>): AttemptFailed {
  if (resolution.outcome === 'not_found') return new AttemptFailed('dns_error', 'name_not_found');
  if (resolution.outcome === 'busy') return new AttemptFailed('dns_error', 'dns_busy');
  return resolution.timedOut ? timedOut() : new AttemptFailed('dns_error', 'dns_failed');
}

async function findAddresses(
  { permits, resolver, chooseDials }: OutboundParts,
  { target, timeoutMs }: OutboundRequest,
  attempt: Attempt,
): Promise<readonly Dial[]> {
  if (!permits(target)) throw notPermitted();
  let addresses: readonly string[] = [target.hostname];
  if (!target.literal) {
    const resolution = await resolver.resolve(target.hostname, timeoutMs);
    attempt.timings.dnsMs = attempt.lap();
    if (resolution.outcome !== 'addresses') {
      throw lookUpFailure(resolution);
    }
    addresses = resolution.addresses;
  }
  return chooseDials(target, addresses);
}
