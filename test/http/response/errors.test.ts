import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { manualClock } from '#test/support/fakes.ts';
import { clientOf } from '#test/support/http-client.ts';
import { fakeWorld, JOB } from '#test/support/http-deps.ts';

function told() {
  const lines: [string, string, Readonly<Record<string, unknown>> | undefined][] = [];
  const time = { now: 0 };
  const line = (level: string) => (text: string, fields?: Readonly<Record<string, unknown>>) => {
    lines.push([level, text, fields]);
  };
  const logger = { info: line('info'), warn: line('warn'), error: line('error') };
  const clock = {
    monotonic: () => time.now,
    now: () => assert.fail('no wall clock'),
    sleep: () => assert.fail('no sleep'),
  };
  return { tell: failureLog({ logger, clock }), lines, time };
}

const text = 'a request could not be served now';

test('failures: an outage is a line a request, its cause with the first of a minute, for each code by itself', () => {
  const { tell, lines, time } = told();
  const cause = new Error('away');
  const away = new Fault('event_log_unavailable', 'the log is away', { cause });
  const rows = new Fault('read_models_unavailable', 'the rows are away');
  tell('1', away);
  time.now = 59_999;
  tell('2', away);
  tell('3', rows);
  time.now = 60_000;
  tell('4', away);
  assert.deepEqual(lines, [
    ['warn', text, { requestId: '1', code: 'event_log_unavailable', cause }],
    ['warn', text, { requestId: '2', code: 'event_log_unavailable' }],
    ['warn', text, { requestId: '3', code: 'read_models_unavailable', cause: rows }],
    ['warn', text, { requestId: '4', code: 'event_log_unavailable', cause }],
  ]);
});

test('failures: what concerns a payment is told by its code alone', () => {
  const { tell, lines } = told();
  tell('1', new Fault('payment_unconfirmed', 'no answer', { cause: new Error('a payer said') }));
  assert.deepEqual(lines, [['warn', text, { requestId: '1', code: 'payment_unconfirmed' }]]);
});

test('failures: what nobody foresaw is told whole, each time', () => {
  const { tell, lines } = told();
  const cause = new TypeError('a bug');
  tell('1', cause);
  tell('2', cause);
  assert.deepEqual(
    lines,
    ['1', '2'].map((requestId) => [
      'error',
      'a request failed',
      { requestId, code: 'internal_error', cause },
    ]),
  );
});

for (const [path, words] of [
  ['/', 'front page without proofs'],
  [`/proof/${JOB}/badge.svg`, 'badge without records'],
] as const) {
  test(`failures: ${path} without the read models is served, and told as an outage of any other route is`, async () => {
    const causes: unknown[] = [
      new Fault('read_models_unavailable', 'the rows are away'),
      new TypeError('a bug'),
    ];
    for (const cause of causes) {
      const away = () => Promise.reject(cause);
      const world = fakeWorld({
        clock: manualClock(),
        reads: { proof: { recent: away, recentFailures: away }, job: { find: away } },
      });
      const client = clientOf(world);
      for (const id of ['one', 'two'])
        assert.equal((await client.call(path, { headers: { 'x-request-id': id } })).status, 200);
      const code = 'read_models_unavailable';
      assert.deepEqual(
        world.log.lines.map(({ level, message, fields }) => [level, message, fields]),
        cause instanceof Fault
          ? [
              ['warn', words, { requestId: 'one', code, cause }],
              ['warn', words, { requestId: 'two', code }],
            ]
          : ['one', 'two'].map((requestId) => [
              'error',
              'a request failed',
              { requestId, code: 'internal_error', cause },
            ]),
      );
    }
  });
}
