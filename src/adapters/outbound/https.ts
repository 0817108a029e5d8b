// The outbound HTTPS call: one look-up, one checked address, one connection, one request, one report.
import type { SecureContext } from 'node:tls';
import type { Dial } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { ErrorCategory } from '../../domain/event-fields.ts';
import { categoryOfStatus } from '../../domain/job/retry.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Outbound, OutboundDefect, type OutboundRequest } from '../../ports/outbound.ts';
import type { Resolver } from '../../ports/resolver.ts';
import { type Attempt, AttemptFailed, newAttempt, reportOf } from './attempt.ts';
import { type Connection, openConnection } from './connection.ts';
import { exchange } from './exchange.ts';
import { ReadTurns } from './read-turns.ts';

export type OutboundParts = {
  /** Queries DNS each time, without a cache. */
  readonly resolver: Resolver;
  /** The destination policy without DNS: text, name, port and lists. The rules may have changed since the job was accepted. */
  readonly permits: (target: Target) => boolean;
  /** Chooses the address to dial among all addresses of a name; null if one of them may not be dialled. */
  readonly chooseAddress: (target: Target, addresses: readonly string[]) => Dial | null;
  readonly secureContext: SecureContext;
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
): Promise<ErrorCategory | null> {
  let connection: Connection | null = null;
  let over = false;
  const assertTimeLeft = () => {
    if (over) throw new AttemptFailed('timeout');
  };
  const steps = async () => {
    const dial = await findAddress(parts, request, attempt);
    assertTimeLeft();
    connection = openConnection(request.target, dial, parts.secureContext, turns, attempt);
    await connection.ready;
    assertTimeLeft();
    await exchange(request, connection, attempt, parts.clock.now);
  };
  try {
    await withTimeout(steps(), request.timeoutMs, () => new AttemptFailed('timeout'));
    return categoryOfStatus(attempt.status ?? 0);
  } catch (error) {
    if (error instanceof AttemptFailed) return error.category;
    throw new OutboundDefect(attempt.sent, error);
  } finally {
    over = true;
    // TypeScript does not see the assignment in `steps`.
    (connection as Connection | null)?.destroy();
  }
}

async function findAddress(
  { permits, resolver, chooseAddress }: OutboundParts,
  { target, timeoutMs }: OutboundRequest,
  attempt: Attempt,
): Promise<Dial> {
  if (!permits(target)) throw new AttemptFailed('target_refused');
  let addresses: readonly string[] = [target.hostname];
  if (!target.literal) {
    const resolution = await resolver.resolve(target.hostname, timeoutMs);
    attempt.timings.dnsMs = attempt.lap();
    if (resolution.outcome !== 'addresses') {
      const late = resolution.outcome === 'failed' && resolution.timedOut;
      throw new AttemptFailed(late ? 'timeout' : 'dns_error');
    }
    addresses = resolution.addresses;
  }
  const dial = chooseAddress(target, addresses);
  if (dial === null) throw new AttemptFailed('target_refused');
  attempt.exempted = dial.exempted;
  return dial;
}
