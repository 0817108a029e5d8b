// The doctor on what is outside: DNS, a call of a target, the chain's node, the facilitator.

import { dnsResolver } from '#src/adapters/outbound/dns.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { httpWitness } from '#src/adapters/witness/http.ts';
import { baseUrl, type Config } from '#src/config.ts';
import { hostOf, readTarget } from '#src/domain/destination/url.ts';
import type { FacilitatorProblem } from '#src/domain/monitoring/health.ts';
import { placesOf } from '#src/domain/places.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { TERM_VARIABLES } from '../start-errors.ts';
import { wireTargets } from '../targets.ts';
import { type Checked, fine, problem, skipped, warning } from './finding.ts';

const LOOK_UP_MS = 5000;

export async function checkDns({ egress: { dnsServers } }: Config, target: string): Promise<Checked> {
  const { hostname: name, literal } = hostOf(new URL(target).hostname);
  if (literal) return skipped('--target has an address: DNS is not asked');
  const asked = dnsServers === null ? 'the system’s DNS servers' : 'the servers of EGRESS_DNS_SERVERS';
  const found = await dnsResolver({ servers: dnsServers, maxInFlight: 1 }).resolve(name, LOOK_UP_MS);
  if (found.outcome === 'addresses')
    return fine(`${name} has ${found.addresses.length} addresses by ${asked}`);
  return problem(
    `${name} is not found by ${asked} (${found.outcome}), and calls would be refused as target_unresolvable: check EGRESS_DNS_SERVERS, or those of this machine, and the name of --target`,
  );
}

const WAY_OUT = 'check the way out of this machine (firewall, routes) and --target';
/** What to do, by error category. */
const EGRESS: Readonly<Record<string, string>> = {
  dns_error: 'look at the line dns',
  tls_error: 'check the roots of this machine, EGRESS_CA_FILE, and the certificate of --target',
  target_refused:
    'the rules of this service refuse its address or port (EGRESS_DENY_CIDRS, EGRESS_PORTS): name another --target',
};

/** One request, by the rules of a call: DNS, address, TLS, status. */
export async function checkEgress(config: Config, href: string): Promise<Checked> {
  const ending = new AbortController();
  try {
    const { outbound } = await wireTargets(config, baseUrl(config, config.listen.port), {
      clock: systemClock(),
      ending: ending.signal,
      places: placesOf(1, { hasSchedules: false }),
    });
    const target = readTarget(href);
    if (isRefused(target)) return problem(`${href} cannot be called`);
    const headers = [['user-agent', 'webhook-relay doctor']] as const;
    const report = await outbound.send({ target, method: 'GET', headers, body: null, timeoutMs: LOOK_UP_MS });
    if (report.status !== null) return fine(`${href} answers ${report.status} over ${report.tlsVersion}`);
    const category = report.errorCategory ?? 'connect_error';
    return problem(
      `${href} is not reached: ${category}, ${report.reason} (${report.phase}): ${EGRESS[category] ?? WAY_OUT}`,
    );
  } finally {
    ending.abort();
  }
}

/**
 * Each witness is given a text that is no checkpoint: a witness answers that with 400, or 404 for an unknown log. Whether it
 * knows this log, and cosigns, a running service states (`checkListen`).
 */
export async function checkWitnesses({ witnesses }: Config): Promise<Checked> {
  if (witnesses === null) return skipped('WITNESS_POLICY_FILE is not set');
  const { witnesses: asked, quorum } = witnesses.policy;
  const answers = await Promise.all(
    asked.map(async ({ name, url }) => {
      const answer = await httpWitness(url).addCheckpoint({ old: 0, proof: [], checkpoint: 'doctor\n' });
      return { name, reason: answer.kind === 'failed' ? answer.why : null };
    }),
  );
  const silent = answers.filter(({ reason }) => reason !== null);
  if (silent.length === 0) return fine(`${asked.length} of WITNESS_POLICY_FILE answer`);
  const text = silent.map(({ name, reason }) => `${name} (${reason})`).join(', ');
  return quorum === null || silent.length < asked.length
    ? warning(`witnesses do not answer: ${text}`)
    : problem(`no witness answers, and the policy requires a quorum: ${text}`);
}

const DEMO = 'not used in demo mode';

export async function checkTerms({ x402 }: Config): Promise<Checked> {
  if (x402 === null) return skipped(DEMO);
  const { termsWarnings } = await import('#src/adapters/payments/terms-warnings.ts');
  const terms = `a call costs $${x402.priceUsd}, paid to ${x402.payTo} on ${x402.network}`;
  const warnings = termsWarnings(x402);
  return warnings.length === 0 ? fine(terms) : warning(`${terms}; ${warnings.join('; ')}`);
}

export async function checkChain({ x402 }: Config): Promise<Checked> {
  if (x402 === null) return skipped(DEMO);
  const { judgeNode } = await import('#src/adapters/payments/check.ts');
  const verdict = await judgeNode(x402, systemClock());
  if (verdict.ok)
    return fine(
      `the node of X402_RPC_URL serves ${x402.network}, token ${verdict.asset} with ${verdict.decimals} decimals, final up to block ${verdict.safeBlock}; X402_PAY_TO holds ${verdict.balance ?? 'an unknown number of'} tokens`,
    );
  return verdict.setting === null
    ? problem(
        `the node of X402_RPC_URL gives no usable answer (${verdict.reason}): check X402_RPC_URL, the key in it, and the way out of this machine`,
      )
    : problem(`${TERM_VARIABLES[verdict.setting]} ${verdict.reason}`);
}

/** `why`: the codes of the failure, in brackets; empty if there are none. */
const FACILITATOR: Readonly<Record<FacilitatorProblem, (why: string) => string>> = {
  no_answer: (why) => `does not answer${why}: check X402_FACILITATOR_URL, and the way out of this machine`,
  login_refused: (why) =>
    `refuses our login${why}: check X402_FACILITATOR_AUTH and its key, or X402_FACILITATOR_HEADERS_FILE, and the clock`,
  failing: (why) => `gives no usable answer${why}: check the path of X402_FACILITATOR_URL`,
  unsupported: () =>
    'does not support scheme exact, version 2, on X402_NETWORK: use another facilitator, or another network',
  internal_error: () => 'cannot be asked: a defect of this program',
};

export async function checkFacilitator({ x402 }: Config): Promise<Checked> {
  if (x402 === null) return skipped(DEMO);
  const { judgeFacilitator } = await import('#src/adapters/payments/check.ts');
  const { host } = new URL(x402.facilitatorUrl);
  const {
    problem: failure,
    codes,
    skewSeconds,
    isLoginReadable,
  } = await judgeFacilitator(x402, systemClock());
  const why = codes.length === 0 ? '' : ` (${codes.join(', ')})`;
  if (failure !== null) return problem(`the facilitator ${host} ${FACILITATOR[failure](why)}`);
  if (skewSeconds !== null)
    return problem(
      `the clock of the facilitator ${host} differs by ${skewSeconds} s from the clock of this machine: payments and our login may be judged expired, synchronise it (NTP)`,
    );
  if (isLoginReadable) return warning(`the facilitator ${host} gets our login without encryption: use https`);
  const login = x402.login === null ? 'without a login' : 'and accepts our login';
  return fine(`${hostOf(host).hostname} supports ${x402.network} ${login}; its clock agrees`);
}
