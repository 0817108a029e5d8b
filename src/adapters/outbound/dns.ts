// DNS over the network with the runtime's Resolver. The destination policy decides which addresses may be dialled.
import { Resolver as RuntimeResolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Resolution, Resolver } from '../../ports/resolver.ts';

export type DnsOptions = {
  /** `ip` or `ip:port`; null: the system's. */
  readonly servers: readonly string[] | null;
  /** Limit of concurrent look-ups; one more returns `busy` at once. */
  readonly maxInFlight: number;
};

/** A lost packet is sent again after `timeout` ms. The caller's time limit ends before the last try. */
const PACKET = { timeout: 1500, tries: 8 };

/**
 * Has no cache: each call queries. A look-up succeeds only if both queries (A and AAAA) are answered completely, so that
 * part of the addresses is never taken for all of them.
 * Deno reads the hosts file first, and reports SERVFAIL like a name that does not exist.
 */
export function dnsResolver({ servers, maxInFlight }: DnsOptions): Resolver {
  let inFlight = 0;
  return {
    async resolve(name, timeoutMs) {
      if (isIP(name) !== 0) return { outcome: 'not_found' };
      if (inFlight >= maxInFlight) return { outcome: 'busy' };
      inFlight++;
      try {
        return await lookUp(name, timeoutMs, servers);
      } finally {
        inFlight--;
      }
    },
  };
}

/** One resolver per look-up: it can be cancelled separately and uses the system's current servers. It costs 20 µs. */
async function lookUp(
  name: string,
  timeoutMs: number,
  servers: readonly string[] | null,
): Promise<Resolution> {
  const resolver = new RuntimeResolver(PACKET);
  if (servers !== null) resolver.setServers(servers);
  // With the final dot no search domain is tried.
  const kinds = [resolver.resolve4(`${name}.`), resolver.resolve6(`${name}.`)].map((kind) =>
    kind.catch(noneIfMissing),
  );
  try {
    const addresses = (await withTimeout(Promise.all(kinds), timeoutMs, late)).flat();
    return addresses.length > 0 ? { outcome: 'addresses', addresses } : { outcome: 'not_found' };
  } catch (error) {
    resolver.cancel();
    return { outcome: 'failed', timedOut: ['ECANCELLED', 'ETIMEOUT'].includes(systemCode(error) ?? '') };
  }
}

const late = () => Object.assign(new Error('no answer in time'), { code: 'ETIMEOUT' });

function noneIfMissing(error: unknown): string[] {
  if (['ENOTFOUND', 'ENODATA'].includes(systemCode(error) ?? '')) return [];
  throw error;
}

const MISS_MS = 60_000;
const MISSES_MAX = 10_000;

/**
 * For checks before an attempt: caches misses, and nothing else, for a minute. Many checks of one bad name query once, and
 * the time of an answer does not reveal whether a name has a non-public address or none. An attempt must query each time
 * and uses the resolver without this cache. `isCallable`: a name that may not be called at its addresses is a miss too.
 */
export function cachingMisses(
  resolver: Resolver,
  clock: Pick<Clock, 'monotonic'>,
  isCallable: (name: string, addresses: readonly string[]) => boolean,
): Resolver {
  const misses = new Map<string, number>();
  return {
    async resolve(name, timeoutMs) {
      const until = misses.get(name);
      if (until !== undefined && clock.monotonic() < until) return { outcome: 'not_found' };
      misses.delete(name);
      const answer = await resolver.resolve(name, timeoutMs);
      const refused = answer.outcome === 'addresses' && !isCallable(name, answer.addresses);
      const resolution: Resolution = refused ? { outcome: 'not_found' } : answer;
      if (resolution.outcome === 'not_found') {
        misses.set(name, clock.monotonic() + MISS_MS);
        if (misses.size > MISSES_MAX) deleteOldest(misses);
      }
      return resolution;
    },
  };
}
