// Presenting a payment: for how long, how often, and which answers are final.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRESENT_MS, present } from '#src/buyer/present.ts';
import { letPass, manualClock } from '#test/support/world/fakes.ts';

const PAYMENT = { name: 'PAYMENT-SIGNATURE', value: 'the one payment' };
const answer = (status: number, body: unknown, headers: Record<string, string> = {}) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, body: text, response: () => new Response(text, { status, headers }) };
};
type Answer = ReturnType<typeof answer>;
const error = (code: string) => ({ error: { code, message: 'words' } });
const DONE = answer(200, { job: {}, receipt: {} });

/** Each call gets the next answer, then always the last one; null: no answer. */
async function presented(...answers: readonly (Answer | null)[]) {
  const clock = manualClock();
  const sent: unknown[] = [];
  const send = async (request: Request) => {
    const next = answers[Math.min(sent.length, answers.length - 1)] ?? null;
    const { method, url, headers } = request;
    const payment = headers.get('PAYMENT-SIGNATURE');
    sent.push([method, url, await request.text(), headers.get('content-type'), payment]);
    if (next === null) throw new Error('no answer');
    return next.response();
  };
  const deps = { send, clock, waiting: () => undefined };
  const result = await letPass(clock, present(deps, 'https://relay.example/x', '{}', PAYMENT));
  return { result, sent, slept: clock.slept, elapsed: clock.monotonic() };
}

test('the same call is repeated with the same payment until a result is returned', async () => {
  const { result, sent } = await presented(null, answer(503, error('payment_unconfirmed')), DONE);
  assert.equal(result.kind, 'executed');
  assert.equal(sent.length, 3);
  const same = ['POST', 'https://relay.example/x', '{}', 'application/json', 'the one payment'];
  for (const call of sent) assert.deepEqual(call, same);
});

test('Retry-After is respected; without it the pauses grow up to a limit', async () => {
  const later = answer(503, error('payment_unconfirmed'), { 'retry-after': '7' });
  assert.deepEqual((await presented(later, later, DONE)).slept, [7000, 7000]);
  const { slept } = await presented(null, null, null, null, null, null, DONE);
  assert.deepEqual(slept, [1000, 2000, 4000, 8000, 15_000, 15_000]);
});

test('presenting ends within two minutes, whatever the value of Retry-After', async () => {
  for (const headers of [{}, { 'retry-after': '999999' }, { 'retry-after': 'nonsense' }]) {
    const { result, elapsed } = await presented(answer(503, error('facilitator_unavailable'), headers));
    assert.deepEqual(result, {
      kind: 'unfinished',
      last: '503 facilitator_unavailable',
    });
    assert.ok(elapsed <= PRESENT_MS, String(elapsed));
  }
});

test('a final refusal of the relay ends the purchase at once', async () => {
  const refusals = [
    [402, { x402Version: 1, error: 'payment_required: insufficient_funds' }, 'payment_required'],
    [400, error('unsafe_target'), 'unsafe_target'],
    [409, error('payment_reused'), 'payment_reused'],
    [409, error('idempotency_conflict'), 'idempotency_conflict'],
    [402, '<h1>pay</h1>', 'payment_required'],
    [508, error('relay_loop'), 'relay_loop'],
  ] as const;
  for (const [status, body, code] of refusals) {
    const { result, sent } = await presented(answer(status, body));
    assert.deepEqual(
      [result.kind, result.kind === 'refused' && result.problem.code, sent.length],
      ['refused', code, 1],
    );
  }
});

test('the reason of a 402 is the message, without its code', async () => {
  for (const [text, message] of [
    ['payment_required: insufficient_funds', 'insufficient_funds'],
    ['payment_required', 'payment_required'],
  ] as const) {
    const { result } = await presented(answer(402, { x402Version: 1, error: text }));
    assert.deepEqual(result.kind === 'refused' && result.problem, { code: 'payment_required', message });
  }
});

test('after an answer that is not final the same payment is presented again: it may be spent', async () => {
  const passing = [
    answer(200, ''),
    answer(200, {}),
    answer(404, 'no such page'),
    answer(403, { error: 'denied' }),
    answer(409, error('idempotency_in_progress')),
    answer(429, error('too_many_in_flight')),
    answer(500, error('internal_error')),
    answer(502, 'bad gateway'),
    answer(504, ''),
  ];
  for (const each of passing) {
    const { result, sent } = await presented(each, DONE);
    assert.deepEqual([result.kind, sent.length], ['executed', 2], `${each.status} ${each.body}`);
  }
});
