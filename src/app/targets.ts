// Which targets this deployment calls: the rules of the configuration, and the look-ups they work on.

import { describeAddress, parseCidr } from '#src/adapters/outbound/addresses.ts';
import { outboundTlsContext } from '#src/adapters/outbound/connection.ts';
import { cachingMisses, dnsResolver, sharedLookUps } from '#src/adapters/outbound/dns.ts';
import { httpsOutbound } from '#src/adapters/outbound/https.ts';
import type { Config } from '#src/config.ts';
import { type AddressFacts, type Cidr, judgeAddress } from '#src/domain/destination/addresses.ts';
import { chooseDials, judgeTarget, type TargetRules } from '#src/domain/destination/policy.ts';
import { hostOf, ownHostOf } from '#src/domain/destination/url.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { Places } from '#src/domain/places.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Resolver } from '#src/ports/resolver.ts';

export type Targets = Awaited<ReturnType<typeof wireTargets>>;

/** Free look-ups in flight at most; executions are bounded by MAX_IN_FLIGHT. */
const FREE_LOOK_UPS_MAX = 256;
/** Of these, of one client address. */
const FREE_LOOK_UPS_SHARE = LIMITS.freeLookUpsPerClient.max;
const OWN_LOOK_UP_MS = 2000;

type TargetParts = {
  readonly clock: Clock;
  readonly ending: AbortSignal;
  readonly places: Pick<Places, 'all' | 'lookUps' | 'lookUpsPerClient'>;
};

/** `ending`: ends the background work. */
export async function wireTargets(config: Config, baseUrl: string, { clock, ending, places }: TargetParts) {
  const resolverFor = (maxInFlight: number) =>
    dnsResolver({ servers: config.egress.dnsServers, maxInFlight });
  const base = new URL(baseUrl);
  const own = followOwnAddresses(base, resolverFor(1), clock, ending);
  await own.firstLook;
  const rules: TargetRules = {
    mode: config.policy.mode,
    blockHosts: config.policy.blockHosts,
    allowHosts: config.policy.allowHosts,
    url: { ports: config.egress.ports, own: ownHostOf(base) },
    addresses: {
      allow: cidrs(config.egress.allowCidrs),
      deny: cidrs(config.egress.denyCidrs),
      nat64: cidrs(config.egress.nat64Prefix === null ? [] : [config.egress.nat64Prefix])[0] ?? null,
      get own() {
        return own.addresses();
      },
    },
  };
  // Of our own name only the canary is ever looked up: the URL's text has been judged before.
  const isCallable = (name: string, addresses: readonly string[]) =>
    addresses
      .map(describeAddress)
      .every(
        (facts) =>
          facts !== null &&
          judgeAddress(facts, rules.addresses, describeAddress, name === rules.url.own.hostname).allowed,
      );
  const lookUps = (max: number, share: number) =>
    sharedLookUps(cachingMisses(resolverFor(max), clock, isCallable), { max, share });
  return {
    rules,
    /** For an execution's check before it is paid for: of one client address at most half of all. */
    resolverOf: lookUps(places.lookUps, places.lookUpsPerClient),
    /** For free checks, which must not keep executions from theirs. */
    freeResolverOf: lookUps(FREE_LOOK_UPS_MAX, FREE_LOOK_UPS_SHARE),
    /** For the attempts of executions. */
    outbound: httpsOutbound({
      resolver: resolverFor(places.all),
      permits: (target) => !isRefused(judgeTarget(target, describeAddress, rules)),
      chooseDials: (target, addresses) => chooseDials(target, addresses, describeAddress, rules),
      secureContext: outboundTlsContext(config.egress.caPem),
      keptHeaders: config.returnedHeaders,
      clock,
    }),
    pseudonym: base.host,
  };
}

const LOOK_AGAIN_MS = 60_000;
const TRY_AGAIN_MS = 5_000;

/** The addresses of PUBLIC_BASE_URL's host: a call to them would reach this service. They change, so the lookup repeats. */
function followOwnAddresses(base: URL, resolver: Resolver, clock: Clock, ending: AbortSignal) {
  const { hostname, literal } = hostOf(base.hostname);
  let known: AddressFacts[] = literal ? read([hostname]) : [];
  async function look(): Promise<boolean> {
    const answer = await resolver.resolve(hostname, OWN_LOOK_UP_MS);
    if (answer.outcome !== 'addresses') return answer.outcome === 'not_found';
    // Those of a kind that is not answered now are still ours.
    const found = read(answer.addresses);
    const isOther = ({ family }: AddressFacts) => found.every((facts) => facts.family !== family);
    known = answer.isPartial ? [...found, ...known.filter(isOther)] : found;
    return !answer.isPartial;
  }
  async function follow(found: boolean): Promise<void> {
    for (let answered = found; !ending.aborted; ) {
      await clock.sleep(answered ? LOOK_AGAIN_MS : TRY_AGAIN_MS, ending);
      if (!ending.aborted) answered = await look();
    }
  }
  const firstLook = literal ? Promise.resolve(true) : look();
  if (!literal) void firstLook.then(follow);
  return { firstLook, addresses: () => known };
}

const read = (texts: readonly string[]): AddressFacts[] =>
  texts.map(describeAddress).filter((facts) => facts !== null);

/** The configuration let only CIDRs through. */
export function cidrs(texts: readonly string[]): Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new Error('a CIDR that the configuration let through cannot be read');
    return cidr;
  });
}
