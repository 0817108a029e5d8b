// DNS over the network by the runtime's own Resolver. Which answers may be dialled is target policy's.
import { Resolver as RuntimeResolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import type { Resolution, Resolver } from '../../ports/resolver.ts';

export type DnsOptions = {
  /** `ip` or `ip:port`; null: the system's. */
  readonly servers: readonly string[] | null;
  /** Look-ups at the same time; one more is `busy` at once. */
  readonly maxInFlight: number;
};

/** A lost packet is asked again after this long; the deadline is the caller's, so there are tries enough. */
const PACKET = { timeout: 1500, tries: 8 };

/**
 * Nothing is remembered: each call asks. An answer of one kind counts only beside a whole answer of the other
 * kind, so that half an answer never passes for all addresses of a name.
 * Under Deno the runtime itself reads the hosts file first, and names SERVFAIL like a name that does not exist.
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

async function lookUp(
  name: string,
  timeoutMs: number,
  servers: readonly string[] | null,
): Promise<Resolution> {
  const resolver = new RuntimeResolver(PACKET);
  if (servers !== null) resolver.setServers(servers);
  let expire: (kind: Kind) => void = () => undefined;
  const expired = new Promise<Kind>((resolve) => {
    expire = resolve;
  });
  const timer = setTimeout(() => {
    expire({ failed: 'ECANCELLED' });
    resolver.cancel();
  }, timeoutMs);
  // A final dot: no search domain is ever tried.
  const ask = (kind: Promise<string[]>) => Promise.race([expired, settled(kind)]);
  try {
    return combine(
      await Promise.all([ask(resolver.resolve4(`${name}.`)), ask(resolver.resolve6(`${name}.`))]),
    );
  } finally {
    clearTimeout(timer);
  }
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
  /** Whether this name with these addresses may be called: if not, it is a miss too, told apart by nothing. */
  readonly isCallable: (name: string, addresses: readonly string[]) => boolean;
  readonly keepMs?: number;
  readonly maxNames?: number;
};

/**
 * For checks before an attempt: keeps misses for `keepMs`, and nothing else, so that a flood of checks on one bad name
 * asks once, and so that a name with a non-public address answers no later than one without any. An attempt must ask
 * each time and takes the resolver itself.
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
