// Every request is declared with what it takes and what bounds it, and is bounded like that where it is served.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { ROUTES, type RouteFacts, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { placesOf } from '#src/domain/places.ts';
import { refused } from '#src/domain/refusal.ts';
import type { SchedulesDeps } from '#src/http/routes/schedules.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { appOf, countingQuota, fakeWorld } from '#test/support/world/http-deps.ts';
import { costList, EVERY_LIMIT, REQUEST_COSTS, TOOLS, TWO_VERIFIED_FROM } from './request-costs.ts';

const SERVED: readonly RouteFacts[] = [...Object.values(ROUTES), ...Object.values(SCHEDULE_ROUTES)];
const nameOf = ({ method, path }: RouteFacts) => `${method} ${path}`;

const isDeclared = (route: RouteFacts) => REQUEST_COSTS.some(({ routes }) => routes.includes(route));

test('every route and every MCP tool is declared with what it takes', () => {
  assert.deepEqual(SERVED.filter((route) => !isDeclared(route)).map(nameOf), []);
  assert.deepEqual(
    TOOLS.filter(({ route }) => !isDeclared(route)).map(({ name }) => name),
    [],
  );
});

test('a route is declared once, or for each case that costs differently', () => {
  const cases = REQUEST_COSTS.flatMap(({ routes, when = '' }) =>
    routes.map((route) => `${nameOf(route)} ${when}`),
  );
  assert.deepEqual(
    cases.filter((one, i) => cases.indexOf(one) !== i),
    [],
  );
});

/** Declared with the runs of schedules. */
const OF_SCHEDULES: readonly RouteFacts[] = Object.values(SCHEDULE_ROUTES);

test('the bounds that are declared are those that are enforced', () => {
  for (const { routes, limits = {} } of REQUEST_COSTS)
    for (const [name, max] of Object.entries(limits)) {
      const limit = EVERY_LIMIT[name];
      if (limit === undefined)
        assert.ok(
          routes.every((route) => OF_SCHEDULES.includes(route)),
          name,
        );
      else assert.equal(limit.max, max, name);
    }
});

/** What requests take, by its words in the table, and the limits of which one bounds it for a client address. */
const BOUNDED: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\bwrites (?!once)|\bwritten\b/, ['decisionsPerDay', 'unchargedPerDay']],
  [/\blook-ups? of the free ones\b/, ['freeLookUpsPerClient']],
  [/\bverify place\b|\ba slot\b/, ['verifiesPerClient']],
  [/\bquestion to the node\b/, ['walletQuestionsPerMinute']],
];

test('what a request takes has a bound for one client address; a request without a rate takes nothing', () => {
  for (const { routes, takes, counted, limits = {} } of REQUEST_COSTS) {
    const names = routes.map(nameOf).join();
    for (const [words, bounds] of BOUNDED)
      if (words.test(takes))
        assert.ok(
          bounds.some((name) => name in limits),
          `${names}: ${bounds}`,
        );
    if (counted.by !== 'rate') assert.equal(takes, 'nothing', names);
  }
  for (const name of ['decisionsPerDay', 'unchargedPerDay'] as const)
    assert.ok(LIMITS[name].max <= 200, name);
});

test('from the MAX_IN_FLIGHT that is stated on, no address can hold the only place to be verified', () => {
  const verifying = (max: number) => placesOf(max, { hasSchedules: true }).verifying;
  assert.deepEqual([verifying(TWO_VERIFIED_FROM - 1), verifying(TWO_VERIFIED_FROM)], [1, 2]);
});

test('deploying: its list of requests is that of the declarations', () => {
  const guide = readFileSync(`${rootPath}/src/DEPLOYING.md`, 'utf8');
  const list = costList();
  assert.ok(guide.endsWith(`\n\n${list}\n`), `src/DEPLOYING.md lacks this list:\n${list}`);
});

// ── as served ───────────────────────────────────────────────────────────────────────────────────────────

const never = async () => refused('route_not_found', 'none');
const schedules: SchedulesDeps = {
  quoteSchedule: never,
  quoteRun: () => refused('route_not_found', 'none'),
  create: never,
  fund: never,
  cancel: never,
  upcoming: () => [],
  find: async () => null,
  progress: { reachedHead: async () => true },
};

const PER_MINUTE = 7;
const READS_PER_MINUTE = 600;

/** Time does not pass, and no wait takes any; a call is executed all the while. */
function served() {
  const clock = { ...systemClock(), monotonic: () => 0, sleep: async () => undefined };
  const world = fakeWorld({
    clock,
    quota: limitingQuota(),
    schedules,
    executionsInFlight: () => 1,
    settings: {
      rateLimitPerMinute: PER_MINUTE,
      readsPerMinute: READS_PER_MINUTE,
      schedules: { horizonDays: 30 },
    },
  });
  const app = appOf(world);
  return ({ method, path }: RouteFacts, clientAddress = '198.51.100.7') => {
    const request = new Request(`http://localhost${path.replace('*', 'checkpoint')}`, { method });
    return app.fetch(request, { clientAddress });
  };
}

/** Allows all, and answers with the limit of the rule. */
function limitingQuota() {
  const state = ({ maxRequests: limit, windowMs }: { maxRequests: number; windowMs: number }) =>
    ({ allowed: true, limit, remaining: limit, resetMs: windowMs }) as const;
  return { ...countingQuota(), take: async (rule: Parameters<typeof state>[0]) => state(rule) };
}

/** The bound that the answer states. */
const policyOf = (response: Response) => response.headers.get('ratelimit-policy');

test('each route states the bound that it is declared with', async () => {
  const call = served();
  for (const { routes, counted } of REQUEST_COSTS)
    for (const route of routes) {
      const policy = policyOf(await call(route, '203.0.113.9'));
      if (counted.by === 'rate') {
        const perMinute = 'perMinute' in counted ? counted.perMinute : counted.shares * PER_MINUTE;
        assert.equal(policy, `${perMinute};w=60`, nameOf(route));
      } else if (counted.by === 'reads') {
        const burst = READS_PER_MINUTE / FACTORS.readBurst;
        assert.equal(policy, `${burst};w=${(burst * 60) / READS_PER_MINUTE}`, nameOf(route));
      } else assert.equal(policy, null, nameOf(route));
    }
});

test('beside executions every read waits its turn, except those of operators', async () => {
  const call = served();
  const perSecond = LIMITS.readsBesideExecutions.max;
  const inTime = perSecond / 10 + (perSecond * LIMITS.readWaitMs.max) / 1000;
  for (let reads = 0; reads < inTime; reads++) await call(ROUTES.robots);
  for (const { routes, counted } of REQUEST_COSTS)
    for (const route of routes) {
      const { status } = await call(route, '203.0.113.9');
      // A badge is shown as an image: its refusal is one.
      if (route === ROUTES.proofBadge) continue;
      const waits = counted.by === 'reads' || counted.by === 'paced' || route === ROUTES.canary;
      assert.equal(status === 429, waits, `${nameOf(route)} ${status}`);
    }
});
