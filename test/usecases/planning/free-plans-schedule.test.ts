// A schedule looked at: when it would run, and what an execution would make of its webhook.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { SchedulePreviewRequest } from '#src/domain/schedule/preview.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import { previewSchedule } from '#src/usecases/planning/free-plans.ts';
import { webhook } from '#test/support/given/given-call.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { firstShown, offsetMs, shownAt } from '#test/support/given/wall-clock.ts';
import { shared, targetRules, type World, world } from '#test/support/world/fakes-world.ts';

type Schedule = SchedulePreviewRequest['schedule'];

const calendar = temporalCalendar();
const DAY = 86_400_000;

const ask = (it: World, now: number, schedule: Schedule, request = webhook()) =>
  previewSchedule(
    { ...it.deps, clock: { now: () => now }, calendar, payer: null },
    { webhook: request, schedule },
  );

async function preview(now: string | number, schedule: Schedule, request = webhook()) {
  const answer = await ask(world(), typeof now === 'number' ? now : Date.parse(now), schedule, request);
  assert.ok(!isRefused(answer), JSON.stringify(answer));
  return answer;
}
const daily = (timeOfDay: string, timezone: string): Schedule => ({ type: 'daily', timeOfDay, timezone });

test('daily, in any zone at any time: three instants, each later than the last and than now, each at its time of day unless the clock skips it, and none left out', async () => {
  const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
  const changes = fc.constantFrom(
    'Europe/Berlin',
    'America/Santiago',
    'Australia/Lord_Howe',
    'Africa/Casablanca',
    'America/Nuuk',
    'Asia/Beirut',
  );
  const time = fc.oneof(
    fc.integer({ min: 0, max: 1439 }),
    fc.constantFrom(0, 15, 30, 59, 60, 120, 150, 179, 180, 1410, 1439),
  );
  const now = fc.integer({ min: Date.parse('2015-01-01'), max: Date.parse('2037-12-01') });
  await fc.assert(
    fc.asyncProperty(fc.oneof(zones, changes), time, now, async (zone, minute, at) => {
      const timeOfDay = new Date(minute * 60_000).toISOString().slice(11, 16);
      const { nextRuns, schedule } = await preview(at, daily(timeOfDay, zone.toLowerCase()));
      assert.deepEqual(schedule, daily(timeOfDay, zone));
      const runs = nextRuns.map((run) => Date.parse(run));
      assert.equal(runs.length, 3);
      const today = Math.floor((at + offsetMs(at, zone)) / DAY);
      const days = [-2, -1, 0, 1, 2, 3, 4, 5].map((more) => today + more);
      const all = new Set(days.map((day) => firstShown(day, minute, zone)).filter((run) => run > at));
      assert.deepEqual(runs, [...all].slice(0, 3));
      for (const [index, run] of runs.entries()) {
        assert.ok(run > (runs[index - 1] ?? at));
        const local = new Date(run + offsetMs(run, zone)).toISOString();
        const skipped = days.some((day) => shownAt(day, minute, zone) === null);
        assert.ok(local.slice(11, 16) === timeOfDay || skipped, `${local} ${timeOfDay} ${zone}`);
      }
    }),
    { numRuns: runs(80) },
  );
});

test('invalid_schedule: a zone that is none, an instant that is past or not real, by its place, before any look-up', async () => {
  const it = world();
  for (const [schedule, path] of [
    [daily('09:00', '+02:00'), '/schedule/timezone'],
    [daily('09:00', 'Mars/Phobos'), '/schedule/timezone'],
    [{ type: 'once', runAt: '2026-02-30T00:00:00Z' }, '/schedule/runAt'],
    [{ type: 'once', runAt: '2030-01-01T00:00:00' }, '/schedule/runAt'],
    [{ type: 'once', runAt: '2026-01-01T00:00:00Z' }, '/schedule/runAt'],
  ] as const) {
    const answer = await ask(it, Date.parse('2026-01-01T00:00:00Z'), schedule);
    assert.ok(isRefused(answer));
    assert.equal(answer.refused, 'invalid_schedule');
    assert.deepEqual(
      (answer.details as { path: string }[]).map((fault) => fault.path),
      [path],
    );
  }
  assert.deepEqual(it.resolver.asked, []);
});

test('the webhook is returned as the policy check returns it, allowed or not, with no value of it', async () => {
  for (const [url, allowed] of [
    ['https://target.example/secret', true],
    ['https://10.0.0.1/secret', false],
  ] as const) {
    const it = world();
    const request = webhook({ url, headers: { 'x-a': 'secret' }, body: 'secret', idempotencyKey: 'secret' });
    const answer = await ask(it, 0, daily('09:00', 'UTC'), request);
    assert.ok(!isRefused(answer));
    assert.deepEqual(answer.webhook, await checkPolicy(it.deps, request, null));
    assert.equal(isRefused(answer.webhook.verdict), !allowed);
    assert.doesNotMatch(JSON.stringify(answer), /secret/);
  }
});

test('warnings: those of the policy check, and one key for all runs of a daily schedule', async () => {
  const codes = async (schedule: Schedule, key: string | null) => {
    const { idempotencyKey: _, ...keyless } = webhook();
    const seen = await preview(0, schedule, key === null ? keyless : { ...keyless, idempotencyKey: key });
    return seen.warnings.map(({ code }) => code);
  };
  const once: Schedule = { type: 'once', runAt: '2026-01-01T00:00:00Z' };
  assert.deepEqual(await codes(once, 'k'), []);
  assert.deepEqual(await codes(once, null), ['idempotency_key_missing']);
  assert.deepEqual(await codes(daily('09:00', 'UTC'), null), ['idempotency_key_missing']);
  assert.deepEqual(await codes(daily('09:00', 'UTC'), 'k'), ['idempotency_key_shared_by_runs']);
});

test('nothing is called, recorded, taken, logged or waited for', async () => {
  const it = world(shared(), { rules: { ...targetRules, mode: 'blocklist-quota' }, targetQuotaPerMinute: 1 });
  for (let i = 0; i < 5; i++) await ask(it, 0, daily('09:00', 'UTC'));
  assert.deepEqual([it.trace, it.outbound.sent, it.logger.lines], [[], [], []]);
  assert.deepEqual(
    it.quota.calls.filter(({ how }) => how === 'take'),
    [],
  );
  assert.deepEqual(it.clock.slept, []);
});
