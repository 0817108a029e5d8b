// Nothing grows with time, with outages, or with requests refused: what each structure keeps after many more keys than it
// may hold, and the listeners that work leaves on a signal that outlives it.

import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { cachingMisses } from '#src/adapters/outbound/dns.ts';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { publicX, rememberingVerify } from '#src/adapters/signing/ed25519.ts';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { healthReport } from '#src/domain/monitoring/health.ts';
import { placesOf } from '#src/domain/places.ts';
import { Fault, isRefused } from '#src/domain/refusal.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { figure } from '#src/http/response/response-cache.ts';
import { latch } from '#src/lib/latch.ts';
import { anyOf, Cancel, sleep, unlessAborted } from '#src/lib/time.ts';
import { TokenBuckets } from '#src/lib/token-bucket.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  claimTurns,
  guessLimit,
  inFlightSlots,
  unconfirmedPayments,
} from '#src/usecases/execution/process-limits.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { appendUntilKnown } from '#src/usecases/process/stream.ts';
import { streamWatch } from '#src/usecases/process/watch.ts';
import { withinDeadline } from '#src/usecases/response-deadline.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { collectingLogger, letPass, manualClock, quiet } from '#test/support/world/fakes.ts';
import { world } from '#test/support/world/fakes-world.ts';
import { capturedCollections } from './captured-collections.ts';

/** A structure that gets `count` different keys, one after another; it holds at most `bound` entries then. */
type Case = {
  readonly name: string;
  readonly count: number;
  readonly bound: number;
  make(): (n: number) => unknown;
};

const PLACES = placesOf(512, { hasSchedules: true });
const clock = manualClock();
const name = (n: number) => `key ${n}`;

const CASES: readonly Case[] = [
  {
    name: 'quota in memory: windows of one rule',
    count: 60_000,
    bound: 50_001,
    make() {
      const quota = memoryQuota();
      return (n) => quota.take({ name: 'rule', windowMs: 86_400_000, maxRequests: 1 }, name(n));
    },
  },
  {
    name: 'read limit: buckets',
    count: 60_000,
    bound: 50_000,
    make() {
      const buckets = new TokenBuckets(clock, { perSecond: 0.001, burst: 1 });
      return (n) => buckets.take(name(n));
    },
  },
  {
    name: 'names without an address',
    count: 12_000,
    bound: 10_000,
    make() {
      const resolver = { resolve: async () => ({ outcome: 'not_found' }) as const };
      const misses = cachingMisses(resolver, clock, () => true);
      return (n) => misses.resolve(name(n), 1000);
    },
  },
  {
    name: 'unconfirmed payments, by account',
    count: 12_000,
    // By payment, by account, and in the set of each account.
    bound: 30_003,
    make() {
      const unconfirmed = unconfirmedPayments();
      return (n) => unconfirmed.add(name(n), `payment-${n}`);
    },
  },
  {
    name: 'wrong guesses',
    count: 12_000,
    bound: 10_000,
    make() {
      const guesses = guessLimit(clock);
      return (n) => guesses.count(`payment-${n}`);
    },
  },
  {
    name: 'observed streams',
    count: 12_000,
    bound: 10_000,
    make() {
      const watch = streamWatch(clock);
      return (n) => watch.unchangedFor({ stream: `job-${n}`, expected: 0n });
    },
  },
  {
    name: 'jobs that callers found running',
    count: 12_000,
    bound: 1000,
    make() {
      const { foundRunning } = jobRecovery({ ...world().deps, candidates: async () => [] });
      return (n) => foundRunning(name(n));
    },
  },
  {
    name: 'valid signatures',
    count: 5000,
    bound: 4096,
    make() {
      const { privateKey } = generateKeyPairSync('ed25519');
      const publicKey = fromBase64url(publicX(privateKey)) ?? assert.fail();
      const verify = rememberingVerify();
      return (n) => verify(publicKey, utf8(name(n)), new Uint8Array(sign(null, utf8(name(n)), privateKey)));
    },
  },
  {
    name: 'causes of failed requests that were logged',
    count: 5000,
    bound: 4,
    make() {
      const log = failureLog({ logger: collectingLogger(), clock });
      const codes = ['event_log_unavailable', 'read_models_unavailable'] as const;
      return (n) => log(name(n), new Fault(codes[n % 2] ?? codes[0], name(n)));
    },
  },
  {
    name: 'answers of figures',
    count: 5000,
    bound: 64,
    make() {
      const ask = figure({ clock, progress: { position: () => null } }, async (n: number) => n);
      return (n) => ask(n);
    },
  },
  {
    name: 'slots in flight, by payer',
    count: 5000,
    bound: 512,
    make() {
      const slots = inFlightSlots(512);
      return (n) => slots.take(name(n), 4);
    },
  },
  {
    name: 'slots in flight, given back',
    count: 5000,
    bound: 0,
    make() {
      const slots = inFlightSlots(512);
      return (n) => {
        const slot = slots.take(name(n), 4);
        if (!isRefused(slot)) slot();
      };
    },
  },
];

for (const { name: what, count, bound, make } of CASES)
  test(`bounded: ${what}`, async () => {
    const { made, entries } = capturedCollections(make);
    for (let n = 0; n < count; n++) {
      const done = made(n);
      if (done instanceof Promise) await done;
    }
    assert.ok(entries() <= bound, `${entries()} entries for ${count} keys`);
  });

async function endOf(turn: ReturnType<ReturnType<typeof claimTurns>>): Promise<void> {
  const taken = await turn;
  assert.ok(typeof taken === 'object');
  taken.end();
}

test('bounded: calls that wait for a turn leave nothing when they give up, however long the first one keeps it', async () => {
  const time = manualClock();
  const { made: takeTurn, entries } = capturedCollections(() => claimTurns(time));
  const first = await takeTurn('key');
  assert.ok(typeof first === 'object');
  for (let round = 0; round < 20; round++) {
    const late = Array.from({ length: 50 }, () => takeTurn('key'));
    assert.deepEqual(await letPass(time, Promise.all(late)), Array(50).fill('late'));
    assert.equal(entries(), 1, 'the key alone');
  }
  const next = takeTurn('key');
  first.end();
  await endOf(next);
  for (let n = 0; n < 5000; n++) await endOf(takeTurn(name(n)));
  assert.equal(entries(), 0);
});

test('bounded: verifies that wait, and those that are done', async () => {
  const time = manualClock();
  const { made: verifies, entries } = capturedCollections(() => new VerifyLimit(time, PLACES));
  const entering = Array.from({ length: 3000 }, (_, n) =>
    verifies.enter({ client: name(n), payer: name(n) }, 5000),
  );
  const most = 2 * LIMITS.verifiesInFlight.max + 2 * LIMITS.verifiesWaiting.max;
  assert.ok(entries() <= most, `${entries()} entries`);
  const places = await letPass(time, Promise.all(entering));
  for (const place of places) if (!isRefused(place)) place();
  assert.equal(entries(), 0);
});

test('bounded: metrics have no series for what callers invent', async () => {
  const figures = prometheusFigures({ version: '0', runtime: 'r' });
  const seriesOf = async () => {
    const { text } = await figures.exposition({
      storage: 's',
      eventLog: { damagedEvents: 0, scrubbedAt: null },
      disk: null,
      conditions: [],
      checks: healthReport(ALL_WELL).checks,
      checkpoint: null,
      executionsInFlight: 0,
      unclosableJobs: 0,
      lag: { lagEvents: 0, lagMs: 0 },
      payments: null,
      witnesses: null,
    });
    return text.split('\n').length;
  };
  const call = (n: number) =>
    figures.requestBegun()({ route: null, method: `METHOD${n}`, status: 404, seconds: 0.001 });
  call(0);
  const before = await seriesOf();
  assert.ok(before > 50);
  for (let n = 1; n < 2000; n++) call(n);
  assert.equal(await seriesOf(), before);
});

/** A signal that outlives the work, and how many listen to it. */
class Counted extends Cancel {
  count = 0;
  override addEventListener(type: 'abort', listener: () => void): void {
    this.count++;
    super.addEventListener(type, listener);
  }
  override removeEventListener(type: 'abort', listener: () => void): void {
    this.count--;
    super.removeEventListener(type, listener);
  }
}

const LISTENING: Readonly<Record<string, (ending: Counted) => Promise<unknown>>> = {
  sleep: (ending) => sleep(0, ending),
  'the clock': (ending) => systemClock().sleep(0, ending),
  unlessAborted: (ending) => unlessAborted(Promise.resolve(), ending),
  'unlessAborted, failed': (ending) =>
    unlessAborted(Promise.reject(new Error('x')), ending).catch(() => null),
  async anyOf(ending) {
    anyOf(ending).release();
  },
  'a wait for a value that does not come': async () => latch<string>(systemClock()).wait(0),
  'a verify that waits and is refused': async (ending) => {
    const limit = new VerifyLimit(systemClock(), PLACES);
    const caller = { client: 'a', payer: 'b' };
    for (let n = 0; n < LIMITS.verifiesInFlight.max; n++) limit.enter(caller, 0);
    return limit.enter(caller, 1, ending);
  },
  'an append that is repeated': async (ending) => {
    const { log, logger } = world();
    let tries = 0;
    const append: typeof log.append = async () => {
      if (++tries < 3) throw new EventLogUnavailable();
      return { nextRevision: 0n, position: '1' };
    };
    const deps = { log: { ...log, append }, clock: instantClock, entropy: systemEntropy(), logger, ending };
    return appendUntilKnown(deps, 'job-1', 'no_stream', []);
  },
  'work within a deadline': (ending) =>
    withinDeadline({ clock: instantClock, logger: collectingLogger() }, 'late', (limited) =>
      limited.sleep(0, ending),
    ).catch(() => null),
};

/** Sleeps end in the next turn, and listen to their signal until then. */
const instantClock = {
  ...systemClock(),
  sleep: (_: number, ending?: Cancel) => sleep(0, ...(ending ? [ending] : [])),
};

for (const [what, work] of Object.entries(LISTENING))
  test(`no listener is left by ${what}`, async () => {
    const ending = new Counted();
    for (let n = 0; n < 20; n++) await work(ending);
    await quiet();
    assert.equal(ending.count, 0);
  });
