// Our own host as the configuration wires it: of all our addresses the canary's alone is called, whatever DNS says of us.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { wireTargets } from '#src/app/targets.ts';
import { readConfig } from '#src/config.ts';
import { readTarget } from '#src/domain/destination/url.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { placesOf } from '#src/domain/places.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { judgeRequest } from '#src/usecases/decisions/judge-request.ts';
import { type DnsAnswers, type DnsServer, startDnsServer } from '#test/support/process/dns-server.ts';
import { waitFor } from '#test/support/process/service.ts';
import { manualClock } from '#test/support/world/fakes.ts';

const BASE = 'https://relay.test';
const CANARY = `${BASE}/api/canary/echo`;
/** Public, and never dialled: nothing here makes a call. */
const [OURS, MOVED, THEIRS] = ['93.184.216.40', '93.184.216.41', '93.184.216.50'];
const OURS_6 = '2606:4700::6810:1';
const ALLOWED = 'allowed';
const NO_ADDRESS = 'target_unresolvable: The target host has no public address.';
const UNSAFE = 'unsafe_target: The target is not a public HTTPS endpoint that this service calls.';

type Relay = {
  readonly dns: DnsServer;
  readonly resolverOf: (client: string) => Resolver;
  readonly freeResolverOf: (client: string) => Resolver;
  /** The words of the verdict, the same before an execution as in a free check. */
  verdict(url: string): Promise<string>;
  /** Moves time until our own name has been looked up again. */
  lookAgain(): Promise<void>;
};

async function withRelay(
  answers: Readonly<Record<string, DnsAnswers>>,
  use: (relay: Relay) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const dns = await startDnsServer({ answers });
  const clock = manualClock();
  const ending = new AbortController();
  try {
    const config = readConfig({ PUBLIC_BASE_URL: BASE, EGRESS_DNS_SERVERS: dns.address, ...env });
    const { rules, resolverOf, freeResolverOf } = await wireTargets(
      config,
      config.publicBaseUrl ?? assert.fail(),
      { clock, ending: ending.signal, places: placesOf(config.rates.maxInFlight, { hasSchedules: true }) },
    );
    const deps = { rules, describeAddress, quota: memoryQuota(), targetQuotaPerMinute: 1 };
    await use({
      dns,
      resolverOf,
      freeResolverOf,
      async verdict(url) {
        const target = readTarget(url);
        assert.ok(!isRefused(target));
        const [before, free] = await Promise.all(
          [resolverOf, freeResolverOf].map((each) =>
            judgeRequest({ ...deps, resolver: each('client') }, target, null),
          ),
        );
        assert.deepEqual(before, free);
        assert.ok(free !== undefined);
        return isRefused(free) ? `${free.refused}: ${free.message}` : ALLOWED;
      },
      async lookAgain() {
        const looks = clock.slept.length;
        await waitFor('our name is waited for', () => clock.advanceToNext());
        await waitFor('our name was looked up again', () => clock.slept.length > looks);
      },
    });
  } finally {
    ending.abort();
    await dns.close();
  }
}

test('the canary may be called at our own public address, and nothing else there by any name', () =>
  withRelay({ 'relay.test': [OURS], 'alias.test': [OURS], 'other.test': [THEIRS] }, async (relay) => {
    for (let i = 0; i < 2; i++) assert.equal(await relay.verdict(CANARY), ALLOWED);
    for (const path of [
      '/',
      '/api/jobs',
      '/api/canary/echo?more',
      '/api/canary/echo/',
      ':8443/api/canary/echo',
    ])
      assert.equal(await relay.verdict(BASE + path), UNSAFE, path);
    for (const path of ['/', '/api/canary/echo'])
      assert.equal(await relay.verdict(`https://alias.test${path}`), NO_ADDRESS, path);
    assert.equal(await relay.verdict('https://unknown.test/'), NO_ADDRESS);
    assert.equal(await relay.verdict(`https://${OURS}/api/canary/echo`), UNSAFE);
    assert.equal(await relay.verdict('https://other.test/'), ALLOWED);
  }));

test('an alias of ours is asked for once, as a name without an address is; the canary each time', () =>
  withRelay({ 'relay.test': [OURS], 'alias.test': [OURS] }, async (relay) => {
    const before = relay.dns.asked('relay.test');
    for (let i = 0; i < 3; i++) {
      await relay.verdict('https://alias.test/');
      await relay.verdict(CANARY);
    }
    // Twice a round: before an execution, and free.
    assert.deepEqual([relay.dns.asked('alias.test'), relay.dns.asked('relay.test') - before], [2, 6]);
  }));

test('our name moves: the canary stays, aliases of the new address are refused, those of the old no more', () =>
  withRelay({ 'relay.test': [OURS], 'alias.test': [MOVED], 'past.test': [OURS] }, async (relay) => {
    assert.equal(await relay.verdict('https://past.test/'), NO_ADDRESS);
    relay.dns.set('relay.test', [MOVED]);
    assert.equal(await relay.verdict(CANARY), ALLOWED);
    await relay.lookAgain();
    assert.equal(await relay.verdict(CANARY), ALLOWED);
    assert.equal(await relay.verdict('https://alias.test/'), NO_ADDRESS);
    assert.equal(await relay.verdict('https://past.test/'), ALLOWED);
  }));

test('the first look-up of our name fails: after the next one the same holds', () =>
  withRelay({ 'relay.test': { rcode: 'SERVFAIL' }, 'alias.test': [OURS] }, async (relay) => {
    relay.dns.set('relay.test', [OURS]);
    assert.equal(await relay.verdict(CANARY), ALLOWED);
    await relay.lookAgain();
    assert.equal(await relay.verdict(CANARY), ALLOWED);
    assert.equal(await relay.verdict('https://alias.test/'), NO_ADDRESS);
    assert.equal(await relay.verdict(`${BASE}/`), UNSAFE);
  }));

test('one kind of our addresses is not answered: those that are known of it stay ours', () =>
  withRelay(
    { 'relay.test': [OURS, OURS_6], 'alias.test': [OURS_6], 'moved.test': [MOVED] },
    async (relay) => {
      assert.equal(await relay.verdict('https://alias.test/'), NO_ADDRESS);
      relay.dns.set('relay.test', [MOVED, OURS_6]);
      relay.dns.breakType('AAAA', 'silent');
      for (let looks = 0; looks < 3; looks++) await relay.lookAgain();
      relay.dns.breakType('AAAA', null);
      assert.equal(await relay.verdict(`https://[${OURS_6}]/`), UNSAFE);
      assert.equal(await relay.verdict('https://moved.test/'), NO_ADDRESS);
    },
  ));

test('EGRESS_DENY_CIDRS and a non-public address win over the canary', async () => {
  const refusing = async (relay: Relay) => assert.equal(await relay.verdict(CANARY), NO_ADDRESS);
  await withRelay({ 'relay.test': [OURS] }, refusing, { EGRESS_DENY_CIDRS: `${OURS}/32` });
  await withRelay({ 'relay.test': [OURS, '10.0.0.1'] }, refusing);
});

// ── shares ──────────────────────────────────────────────────────────────────────────────────────────────

const LOOK_UP_MS = 600;

/** How many of so many look-ups of one client at once are made, while no server answers. */
async function begun(resolver: Resolver, count: number, name: string): Promise<number> {
  const names = Array.from({ length: count }, (_, n) => `${name}${n}.silent.test`);
  const outcomes = await Promise.all(names.map((each) => resolver.resolve(each, LOOK_UP_MS)));
  return outcomes.filter(({ outcome }) => outcome === 'failed').length;
}

test('one client address has a share of the free look-ups: another’s are made meanwhile, and those before executions', () =>
  withRelay({ 'relay.test': [OURS], '*': { drop: true } }, async (relay) => {
    const share = LIMITS.freeLookUpsPerClient.max;
    const asked = await Promise.all([
      begun(relay.freeResolverOf('stranger'), 300, 'a'),
      begun(relay.freeResolverOf('another'), 1, 'b'),
      begun(relay.resolverOf('stranger'), 1, 'c'),
    ]);
    assert.deepEqual(asked, [share, 1, 1]);
    assert.equal(await begun(relay.freeResolverOf('stranger'), share, 'd'), share, 'they are given back');
  }));

for (const max of [1, 2, 4, 16])
  test(`MAX_IN_FLIGHT=${max}: of the look-ups before executions one client address has 8 of 16 at once`, () =>
    withRelay(
      { 'relay.test': [OURS], '*': { drop: true } },
      async (relay) => {
        const asked = await Promise.all([
          begun(relay.resolverOf('stranger'), 17, 'a'),
          begun(relay.resolverOf('another'), 17, 'b'),
        ]);
        assert.deepEqual(asked, [8, 8]);
      },
      { MAX_IN_FLIGHT: String(max) },
    ));
