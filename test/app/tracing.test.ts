// What spans say of the calls that leave this process: words of our own, and the public id of a job.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tracedLog, tracedPayments } from '#src/app/telemetry.ts';
import { ALLOWED, refused } from '#src/domain/refusal.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { SpanFacts, Tracer } from '#src/ports/telemetry.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';

function collectingTracer() {
  const spans: (readonly [name: string, facts: SpanFacts])[] = [];
  const tracer: Tracer = {
    async within(name, _kind, work) {
      const facts: Record<string, SpanFacts[string]> = {};
      spans.push([name, facts]);
      return work({
        rename: () => undefined,
        setAttributes: (more) => void Object.assign(facts, more),
        fail: () => void Object.assign(facts, { failed: true }),
      });
    },
    traceId: () => null,
    close: async () => undefined,
  };
  return { tracer, spans };
}

test('traced: payments by their outcome, and by nothing that a payer or facilitator said', async () => {
  const { tracer, spans } = collectingTracer();
  const stranger = 'canary of a stranger';
  const payments: Payments = {
    mode: 'x402',
    validateTerms: () => ALLOWED,
    validateTicket: () => ({ kind: 'ticket', verifiedBy: 'facilitator' }),
    verifySignature: async () => ({ outcome: 'valid' }),
    balanceOf: async () => null,
    validateNew: () => refused('payment_required', 'expired'),
    verify: async () => ({ outcome: 'invalid', reason: stranger }),
    settle: async () => ({ outcome: 'unknown', cause: stranger, transaction: stranger }),
    lookUp: async () => ({ outcome: 'paid', transaction: stranger }),
    health: async () => ({ ok: true }),
  };
  const traced = tracedPayments(payments, tracer);
  const payment = presentedPayment();
  assert.equal(traced.mode, 'x402');
  assert.equal(traced.validateTerms(payment), ALLOWED);
  assert.deepEqual(traced.validateNew(payment, 1), payments.validateNew(payment, 1));
  assert.deepEqual(await traced.verify(payment), await payments.verify(payment));
  assert.deepEqual(await traced.settle(payment), await payments.settle(payment));
  assert.deepEqual(await traced.lookUp(payment), await payments.lookUp(payment));
  assert.deepEqual(await traced.health(), { ok: true });
  assert.deepEqual(spans, [
    ['payment.verify', { 'relay.outcome': 'invalid' }],
    ['payment.settle', { 'relay.outcome': 'unknown' }],
    ['payment.look_up', { 'relay.outcome': 'paid' }],
  ]);
  assert.equal(tracedPayments(payments, null), payments);
});

test('traced: the log by category and types; of stream names only that of a job', async () => {
  const { tracer, spans } = collectingTracer();
  const log = tracedLog(memoryLog(), tracer);
  const event = (type: string) => ({ id: crypto.randomUUID(), type, data: { a: 'secret' }, metadata: {} });
  await log.append('job-job_1', 'no_stream', [event('JobStarted'), event('AttemptMade')]);
  await log.append('claim-abcdef', 'no_stream', [event('IdempotencyKeyClaimed')]);
  assert.equal((await log.readStream('job-job_1')).length, 2);
  assert.equal((await log.readStream('payment-123456')).length, 0);
  await log.head();
  assert.equal((await log.readAll({ after: null, max: 9 })).length, 3);
  await assert.rejects(log.append('job-job_1', 'no_stream', [event('JobStarted')]), {
    name: 'WrongExpectedVersion',
  });
  const facts = (category: string, id: string | null, more: SpanFacts) => ({
    'relay.event_log.category': category,
    'relay.job.id': id,
    ...more,
  });
  assert.deepEqual(spans, [
    ['event_log.append', facts('job', 'job_1', { 'relay.event_log.types': 'JobStarted AttemptMade' })],
    ['event_log.append', facts('claim', null, { 'relay.event_log.types': 'IdempotencyKeyClaimed' })],
    ['event_log.read', facts('job', 'job_1', { 'relay.event_log.events': 2 })],
    ['event_log.read', facts('payment', null, { 'relay.event_log.events': 0 })],
    ['event_log.head', {}],
    ['event_log.append', facts('job', 'job_1', { 'relay.event_log.types': 'JobStarted' })],
  ]);
});
