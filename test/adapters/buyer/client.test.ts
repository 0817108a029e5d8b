// Presenting a payment: how long, how often, and what counts as an end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, PATIENCE_MS, present } from '#src/adapters/buyer/client.ts';
import { letPass, manualClock } from '#test/support/fakes.ts';

const PAYMENT = { name: 'PAYMENT-SIGNATURE', value: 'the one payment' };
const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Answer => ({
  status,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  header: (name) => headers[name.toLowerCase()] ?? null,
});
const error = (code: string) => ({ error: { code, message: 'words' } });
const DONE = answer(200, { job: {}, receipt: {} });

/** Each call takes the next answer, the last one for ever; null: none came. */
async function presented(...answers: readonly (Answer | null)[]) {
  const clock = manualClock();
  const sent: unknown[] = [];
  const send = async (...call: unknown[]) => {
    const next = answers[Math.min(sent.length, answers.length - 1)] ?? null;
    sent.push(call);
    if (next === null) throw new Error('no answer');
    return next;
  };
  const deps = { send, clock, waiting: () => undefined };
  const result = await letPass(clock, present(deps, 'https://relay.example/x', '{}', PAYMENT));
  return { result, sent, slept: clock.slept, elapsed: clock.monotonic() };
}

test('the same call with the same payment, again and again', async () => {
  const { result, sent } = await presented(null, answer(503, error('payment_unconfirmed')), DONE);
  assert.equal(result.kind, 'executed');
  assert.equal(sent.length, 3);
  const headers = { 'content-type': 'application/json', 'PAYMENT-SIGNATURE': 'the one payment' };
  for (const call of sent) assert.deepEqual(call, ['POST', 'https://relay.example/x', '{}', headers]);
});

test('Retry-After is waited for; without one the pauses grow, and have an end', async () => {
  const later = answer(503, error('payment_unconfirmed'), { 'retry-after': '7' });
  assert.deepEqual((await presented(later, later, DONE)).slept, [7000, 7000]);
  const { slept } = await presented(null, null, null, null, null, null, DONE);
  assert.deepEqual(slept, [1000, 2000, 4000, 8000, 15_000, 15_000]);
});

test('patience ends within two minutes, whatever Retry-After says', async () => {
  for (const headers of [{}, { 'retry-after': '999999' }, { 'retry-after': 'nonsense' }]) {
    const { result, elapsed } = await presented(answer(503, error('facilitator_unavailable'), headers));
    assert.deepEqual(result, { kind: 'unfinished', last: '503 facilitator_unavailable' });
    assert.ok(elapsed <= PATIENCE_MS, String(elapsed));
  }
});

test('a final no of the relay ends it at once', async () => {
  const refusals = [
    [402, { x402Version: 1, error: 'payment_required: insufficient_funds' }, 'payment_required'],
    [400, error('unsafe_target'), 'unsafe_target'],
    [409, error('payment_reused'), 'payment_reused'],
    [409, error('idempotency_conflict'), 'idempotency_conflict'],
    [508, error('relay_loop'), 'relay_loop'],
  ] as const;
  for (const [status, body, code] of refusals) {
    const { result, sent } = await presented(answer(status, body));
    assert.deepEqual(
      [result.kind, result.kind === 'refused' && result.code, sent.length],
      ['refused', code, 1],
    );
  }
});

test('what is no word of the relay is no end: the payment may be spent', async () => {
  const strange = [
    answer(200, ''),
    answer(200, {}),
    answer(404, 'no such page'),
    answer(403, { error: 'denied' }),
  ];
  for (const each of [...strange, answer(502, 'bad gateway'), answer(500, error('internal_error'))]) {
    const { result, sent } = await presented(each, DONE);
    assert.deepEqual([result.kind, sent.length], ['executed', 2], `${each.status} ${each.body}`);
  }
});
