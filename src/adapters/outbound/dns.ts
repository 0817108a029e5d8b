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

/**
 * A lost packet is sent again after `timeout` ms in Deno, and after a second in Bun, which looks at its DNS timers once a second:
 * with 1,500 ms that were two. The caller's time limit ends before the last try.
 */
const PACKET = { timeout: 450, tries: 10 };

type Kind = 'A' | 'AAAA';
/**
 * How long after its start a look-up with addresses of this kind waits for the other kind, in ms. IPv6 addresses alone are of no use
 * to a machine without IPv6, so that a lost A packet is sent again before.
 */
const WAIT_FOR_OTHER_MS: Readonly<Record<Kind, number>> = { A: 500, AAAA: 1500 };
/** At most this share of the look-up's time limit. */
const WAIT_SHARE = 0.75;
/** An answer that comes later than this waits for the other kind as RFC 8305 §3 has it. */
const RESOLUTION_DELAY_MS = 50;

/**
 * Has no cache: each call queries. One kind that is not answered, or with an error, does not hide the addresses of the other: only
 * what was judged is dialled. No address at all is `not_found` only if both kinds were answered.
 * Deno reads the hosts file first, reports SERVFAIL and other errors like a name that does not exist, and asks no second server if
 * the first is silent.
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

/** `failed`: answered with an error. `silent`: not answered. */
type Answer = { readonly kind: Kind; readonly addresses: readonly string[] | 'failed' | 'silent' };

/** One resolver per look-up: it can be cancelled separately and uses the system's current servers. It costs 20 µs. */
async function lookUp(
  name: string,
  timeoutMs: number,
  servers: readonly string[] | null,
): Promise<Resolution> {
  const resolver = new RuntimeResolver(PACKET);
  if (servers !== null) resolver.setServers(servers);
  try {
    return resolutionOf(await withTimeout(askBoth(resolver, name, timeoutMs), timeoutMs, late));
  } catch {
    return { outcome: 'failed', timedOut: true };
  } finally {
    resolver.cancel();
  }
}

const late = () => new Error('no answer in time');

async function askBoth(resolver: RuntimeResolver, name: string, timeoutMs: number): Promise<Answer[]> {
  const begun = performance.now();
  // With the final dot no search domain is tried.
  const a = answerOf('A', resolver.resolve4(`${name}.`));
  const aaaa = answerOf('AAAA', resolver.resolve6(`${name}.`));
  const first = await Promise.race([a, aaaa]);
  const [other, kind] = first.kind === 'A' ? ([aaaa, 'AAAA'] as const) : ([a, 'A'] as const);
  if (!hasAddresses(first)) return [first, await other];
  const passedMs = performance.now() - begun;
  const waitMs = Math.min(WAIT_FOR_OTHER_MS[first.kind], timeoutMs * WAIT_SHARE) - passedMs;
  const leastMs = Math.min(RESOLUTION_DELAY_MS, (timeoutMs - passedMs) / 2);
  const silent: Answer = { kind, addresses: 'silent' };
  return [first, await withTimeout(other, Math.max(waitMs, leastMs), late).catch(() => silent)];
}

async function answerOf(kind: Kind, asked: Promise<string[]>): Promise<Answer> {
  try {
    return { kind, addresses: await asked };
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (['ENOTFOUND', 'ENODATA'].includes(code)) return { kind, addresses: [] };
    return { kind, addresses: ['ECANCELLED', 'ETIMEOUT'].includes(code) ? 'silent' : 'failed' };
  }
}

const hasAddresses = ({ addresses }: Answer) => typeof addresses !== 'string' && addresses.length > 0;

/** IPv4 addresses first. */
function resolutionOf(answers: readonly Answer[]): Resolution {
  const ordered = answers.toSorted((one, other) => one.kind.length - other.kind.length);
  const addresses = ordered.flatMap(({ addresses }) => (typeof addresses === 'string' ? [] : addresses));
  const timedOut = answers.some((answer) => answer.addresses === 'silent');
  const isPartial = timedOut || answers.some((answer) => answer.addresses === 'failed');
  if (addresses.length > 0)
    return isPartial ? { outcome: 'addresses', addresses, isPartial } : { outcome: 'addresses', addresses };
  return isPartial ? { outcome: 'failed', timedOut } : { outcome: 'not_found' };
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

/**
 * The look-ups of all clients, at most `max` at once, and of one client at most `share`: one more returns `busy` at once, so
 * that no client keeps the others from theirs.
 */
export function sharedLookUps(
  resolver: Resolver,
  { max, share }: { readonly max: number; readonly share: number },
): (client: string) => Resolver {
  const byClient = new Map<string, number>();
  let all = 0;
  const add = (client: string, change: 1 | -1) => {
    all += change;
    const own = (byClient.get(client) ?? 0) + change;
    if (own > 0) byClient.set(client, own);
    else byClient.delete(client);
  };
  return (client) => ({
    async resolve(name, timeoutMs) {
      if (all >= max || (byClient.get(client) ?? 0) >= share) return { outcome: 'busy' };
      add(client, 1);
      try {
        return await resolver.resolve(name, timeoutMs);
      } finally {
        add(client, -1);
      }
    },
  });
}
