import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { fakeWorld, JOB } from '#test/support/world/http-deps.ts';

function recorder() {
  const lines: [string, string, Readonly<Record<string, unknown>> | undefined][] = [];
  const time = { now: 0 };
  const line = (level: string) => (text: string, fields?: Readonly<Record<string, unknown>>) => {
    lines.push([level, text, fields]);
  };
  const lined = { info: line('info'), warn: line('warn'), error: line('error'), bug: line('bug') };
  const logger = loggerOver(lined, { now: () => 0 });
  const clock = {
    monotonic: () => time.now,
    now: () => assert.fail('no wall clock'),
    sleep: () => assert.fail('no sleep'),
  };
  return { logFailure: failureLog({ logger, clock }), lines, time };
}

const text = 'a part of the service was unavailable to a request';

test('failures: an outage is a line a request, its cause with the first of a minute, for each code separately', () => {
  const { logFailure, lines, time } = recorder();
  const cause = new Error('outage');
  const outage = new Fault('event_log_unavailable', 'the log is unavailable', { cause });
  const rows = new Fault('read_models_unavailable', 'the rows are unavailable');
  logFailure('1', outage);
  time.now = 59_999;
  logFailure('2', outage);
  logFailure('3', rows);
  time.now = 60_000;
  logFailure('4', outage);
  assert.deepEqual(lines, [
    ['warn', text, { requestId: '1', code: 'event_log_unavailable', cause }],
    ['warn', text, { requestId: '2', code: 'event_log_unavailable' }],
    ['warn', text, { requestId: '3', code: 'read_models_unavailable', cause: rows }],
    ['warn', text, { requestId: '4', code: 'event_log_unavailable', cause }],
  ]);
});

test('failures: a payment fault is logged with its code only', () => {
  const { logFailure, lines } = recorder();
  logFailure('1', new Fault('payment_unconfirmed', 'no answer', { cause: new Error('a payer said') }));
  assert.deepEqual(lines, [['warn', text, { requestId: '1', code: 'payment_unconfirmed' }]]);
});

test('failures: an unexpected error is logged completely, each time', () => {
  const { logFailure, lines } = recorder();
  const cause = new TypeError('a bug');
  logFailure('1', cause);
  logFailure('2', cause);
  assert.deepEqual(
    lines,
    ['1', '2'].map((requestId) => ['bug', 'a request failed', { requestId, cause }]),
  );
});

for (const path of ['/', `/proof/${JOB}/badge.svg`]) {
  test(`failures: ${path} without the read models is served, and logged as an outage of any other route is`, async () => {
    const causes: unknown[] = [
      new Fault('read_models_unavailable', 'the rows are unavailable'),
      new TypeError('a bug'),
    ];
    for (const cause of causes) {
      const outage = () => Promise.reject(cause);
      const world = fakeWorld({
        clock: manualClock(),
        reads: { proof: { recent: outage, recentFailures: outage }, job: { find: outage } },
      });
      const client = clientOf(world);
      for (const id of ['one', 'two'])
        assert.equal((await client.call(path, { headers: { 'x-request-id': id } })).status, 200);
      const code = 'read_models_unavailable';
      assert.deepEqual(
        world.log.lines.map(({ level, message, fields }) => [level, message, fields]),
        cause instanceof Fault
          ? [
              ['warn', text, { requestId: 'one', code, cause }],
              ['warn', text, { requestId: 'two', code }],
            ]
          : ['one', 'two'].map((requestId) => ['bug', 'a request failed', { requestId, cause }]),
      );
    }
  });
}
