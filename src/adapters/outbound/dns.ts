// DNS over the network by the runtime's own Resolver. The destination policy decides which addresses may be dialled.
import { Resolver as RuntimeResolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '#src/lib/time.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Resolution, Resolver } from '../../ports/resolver.ts';

export type DnsOptions = {
  /** `ip` or `ip:port`; null: the system's. */
  readonly servers: readonly string[] | null;
  /** Look-ups at the same time; another one is `busy` at once. */
  readonly maxInFlight: number;
};

/** A lost packet is sent again after this time; the caller sets the time limit, so there are tries enough. */
const PACKET = { timeout: 1500, tries: 8 };

/**
 * Without a cache: each call queries. An answer of one kind counts only together with a complete answer of the other
 * kind, so that half an answer is never taken for all addresses of a name.
 * Deno itself reads the hosts file first, and reports SERVFAIL like a name that does not exist.
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

type Kind = { readonly addresses: readonly string[] } | { readonly failed: string };

/** A resolver for each look-up can be cancelled alone and follows changes of the system's servers; it costs 20 µs. */
function lookUp(name: string, timeoutMs: number, servers: readonly string[] | null): Promise<Resolution> {
  const resolver = new RuntimeResolver(PACKET);
  if (servers !== null) resolver.setServers(servers);
  // A final dot: no search domain is ever tried.
  const kinds = [settled(resolver.resolve4(`${name}.`)), settled(resolver.resolve6(`${name}.`))];
  return withTimeout(Promise.all(kinds), timeoutMs, () => new Error('no answer in time')).then(
    combine,
    () => {
      resolver.cancel();
      return { outcome: 'failed', timedOut: true };
    },
  );
}

async function settled(answer: Promise<string[]>): Promise<Kind> {
  try {
    return { addresses: await answer };
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOTFOUND' || code === 'ENODATA' ? { addresses: [] } : { failed: code };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function combine(kinds: readonly Kind[]): Resolution {
  const failures = kinds.flatMap((kind) => ('failed' in kind ? [kind.failed] : []));
  if (failures.length > 0) {
    return {
      outcome: 'failed',
      timedOut: failures.some((code) => code === 'ECANCELLED' || code === 'ETIMEOUT'),
    };
  }
  const addresses = kinds.flatMap((kind) => ('addresses' in kind ? kind.addresses : []));
  return addresses.length > 0 ? { outcome: 'addresses', addresses } : { outcome: 'not_found' };
}

export type MissOptions = {
  /** Whether this name with these addresses may be called: if not, it is an equal miss. */
  readonly isCallable: (name: string, addresses: readonly string[]) => boolean;
  readonly keepMs?: number;
  readonly maxNames?: number;
};

/**
 * For checks before an attempt: caches misses for `keepMs`, and nothing else, so that many checks of one bad name query
 * once, and so that a name with a non-public address answers no later than one without any. An attempt must query each
 * time and takes the resolver itself.
 */
export function rememberingMisses(
  resolver: Resolver,
  clock: Pick<Clock, 'monotonic'>,
  { isCallable, keepMs = 60_000, maxNames = 10_000 }: MissOptions,
): Resolver {
  const misses = new Map<string, number>();
  return {
    async resolve(name, timeoutMs) {
      const until = misses.get(name);
      if (until !== undefined && clock.monotonic() < until) return { outcome: 'not_found' };
      misses.delete(name);
      const asked = await resolver.resolve(name, timeoutMs);
      const refused = asked.outcome === 'addresses' && !isCallable(name, asked.addresses);
      const resolution: Resolution = refused ? { outcome: 'not_found' } : asked;
      if (resolution.outcome === 'not_found') {
        // A Map keeps the order of insertion: the first is the oldest.
        if (misses.size >= maxNames) misses.delete(misses.keys().next().value ?? name);
        misses.set(name, clock.monotonic() + keepMs);
      }
      return resolution;
    },
  };
}
