// What the target gets of a call, and what the log keeps of it: facts and commitments, nothing of the request itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { execute } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM } from '#test/support/given/given-events.ts';
import { ran } from '#test/support/given/given-payment.ts';
import { failing, letPass } from '#test/support/world/fakes.ts';
import { world } from '#test/support/world/fakes-world.ts';

test('the target gets the request as read, signed again for each attempt, and the log nothing of it', async () => {
  const it = world();
  it.outbound.script(failing());
  const request = {
    method: 'PUT',
    timeoutMs: 1234,
    retry: { attempts: 2, backoffMs: 0 },
    headers: { 'X-Secret': 'in memory only', connection: 'x-hop', 'X-Hop': 1, 'x-num': 2 },
    body: { text: 'in memory only' },
    url: 'https://TARGET.example:443/in-memory-only?q#frag',
  } as const;
  const answer = await letPass(it.clock, execute(it, { request, key: 'in memory only' }));
  assert.ok(answer.kind === 'ran');
  assert.deepEqual([answer.execution.mode, answer.execution.job.attempts], ['x402', 2]);
  assert.equal(it.outbound.sent.length, 2);
  for (const { target, method, timeoutMs, body, headers } of it.outbound.sent) {
    assert.equal(target.href, 'https://target.example/in-memory-only?q');
    assert.deepEqual([method, timeoutMs], ['PUT', 1234]);
    assert.equal(Buffer.from(body ?? []).toString(), '{"text":"in memory only"}');
    const given = Object.fromEntries(headers);
    assert.deepEqual(
      ['x-secret', 'x-num', 'x-hop', 'content-type', 'idempotency-key', 'via'].map((name) => given[name]),
      ['in memory only', '2', undefined, 'application/json', answer.execution.job.id, '1.1 relay.example'],
    );
    assert.equal(given['webhook-timestamp'], String(Math.floor(it.clock.now() / 1000)));
  }
  const stored = JSON.stringify(it.log.events.map(({ stream, data, metadata }) => [stream, data, metadata]));
  assert.doesNotMatch(stored, /in.memory.only|target\.example|x-secret/i);
  assert.doesNotMatch(JSON.stringify(it.logger.lines), /in.memory.only|target\.example/i);
});

test('JobStarted holds the facts of the call: route, decision, payment, streams, retries, owner', async () => {
  const it = world();
  const guided = {
    route: 'execute/guided-webhook',
    decisionId: 'dec_1',
    decisionHash: 'd'.repeat(64),
  } as const;
  const answer = await ran(it, {
    ...guided,
    request: { retry: { attempts: 3, backoffMs: 7 }, timeoutMs: 1000, method: 'DELETE' },
  });
  const [started] = await it.log.readStream(`job-${answer.job.id}`);
  const { fingerprint, claimStream, commitments, startedAt, leaseMs, payment, ...facts } =
    started?.data ?? {};
  assert.deepEqual(facts, {
    v: 2,
    schedule: null,
    jobId: answer.job.id,
    mode: 'x402',
    ...guided,
    method: 'DELETE',
    paymentStream: PAYMENT_STREAM,
    attemptsAllowed: 3,
    backoffMs: 7,
    timeoutMs: 1000,
    owner: it.owner,
  });
  assert.deepEqual(payment, answer.payment);
  const [claimed] = it.log.events.filter(({ type }) => type === 'IdempotencyKeyClaimed');
  assert.deepEqual([claimed?.stream, claimed?.data.fingerprint], [claimStream, fingerprint]);
  assert.equal(answer.job.decisionId, 'dec_1');
});
