// Which targets this deployment calls: the rules of the configuration, and the readers and look-ups they work on.

import { describeAddress, parseCidr, parseUrl } from '../adapters/outbound/addresses.ts';
import { dnsResolver, rememberingMisses } from '../adapters/outbound/dns.ts';
import { httpsOutbound } from '../adapters/outbound/https.ts';
import { outboundTlsContext } from '../adapters/outbound/trust.ts';
import type { Config } from '../config.ts';
import type { AddressFacts, Cidr } from '../domain/target/addresses.ts';
import { hostOf } from '../domain/target/names.ts';
import { relayPseudonym } from '../domain/target/outbound-headers.ts';
import { chooseDial, type TargetReaders, type TargetRules } from '../domain/target/policy.ts';
import { ownHostOf, type UrlParts } from '../domain/target/url.ts';
import type { Clock } from '../ports/clock.ts';
import type { Outbound } from '../ports/outbound.ts';
import type { Resolver } from '../ports/resolver.ts';

export type Targets = {
  readonly rules: TargetRules;
  readonly readers: TargetReaders;
  /** For checks before an attempt: remembers misses for a while. */
  readonly resolver: Resolver;
  readonly outbound: Outbound;
  readonly pseudonym: string;
};

/** DNS look-ups in flight at most, for attempts and for checks each. */
const LOOK_UPS_MAX = 256;
const OWN_LOOK_UP_MS = 2000;

export async function wireTargets(config: Config, baseUrl: string, clock: Clock): Promise<Targets> {
  const readers: TargetReaders = { parse: parseUrl, describe: describeAddress };
  const attempts = dnsResolver({ servers: config.egress.dnsServers, maxInFlight: LOOK_UPS_MAX });
  const checks = dnsResolver({ servers: config.egress.dnsServers, maxInFlight: LOOK_UPS_MAX });
  const base = parseUrl(baseUrl);
  if (base === null) throw new Error('the base URL was judged by the configuration');
  const rules: TargetRules = {
    mode: config.policy.mode,
    blockHosts: config.policy.blockHosts,
    allowHosts: config.policy.allowHosts,
    url: { ports: config.egress.ports, own: ownHostOf(base) },
    addresses: {
      allow: cidrs(config.egress.allowCidrs),
      deny: cidrs(config.egress.denyCidrs),
      own: await ownAddresses(base, checks),
    },
  };
  return {
    rules,
    readers,
    resolver: rememberingMisses(checks, clock),
    outbound: httpsOutbound({
      resolver: attempts,
      judge: (target, addresses) => chooseDial(target, addresses, describeAddress, rules),
      secureContext: outboundTlsContext(config.egress.caPem),
      clock,
    }),
    pseudonym: relayPseudonym(base),
  };
}

/** What PUBLIC_BASE_URL's host stands for now: calls to it would come back to us. */
async function ownAddresses(base: UrlParts, resolver: Resolver): Promise<AddressFacts[]> {
  const { hostname, literal } = hostOf(base.hostname);
  const answer = literal ? null : await resolver.resolve(hostname, OWN_LOOK_UP_MS);
  const texts = literal ? [hostname] : answer?.outcome === 'addresses' ? answer.addresses : [];
  return texts.map(describeAddress).filter((facts) => facts !== null);
}

/** The configuration let only CIDRs through. */
function cidrs(texts: readonly string[]): Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new Error('a CIDR that the configuration let through cannot be read');
    return cidr;
  });
}
