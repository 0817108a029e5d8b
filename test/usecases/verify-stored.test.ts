// A stored receipt verified with what the log holds, on jobs that were really executed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { loadJob } from '#src/usecases/journal.ts';
import { keyDirectory } from '#src/usecases/key-directory.ts';
import { noTransparency } from '#src/usecases/transparency.ts';
import { type StoredJob, upToCompletion, verifyStored } from '#src/usecases/verify-stored.ts';
import { failing, letPass } from '#test/support/fakes.ts';
import { otherPayment } from '#test/support/fakes-payments.ts';
import { given, shared, world } from '#test/support/fakes-world.ts';
import { type CallChanges, execute, paidWith } from '#test/support/given-call.ts';
import { keyActivated } from '#test/support/given-events.ts';
import { primitives } from '#test/support/primitives.ts';

/** An executed job as the read models have it, in a log that knows the key. */
async function stored(changes: CallChanges = {}, it = world(shared())) {
  if ((await it.log.readStream('keys-relay')).length === 0) {
    await given(it, 'keys-relay', keyActivated({ keyId: it.key.keyId, x: it.key.x }));
  }
  it.outbound.script(failing());
  const answer = await letPass(it.clock, execute(it, { request: { retry: { attempts: 2 } }, ...changes }));
  assert.ok(answer.kind === 'ran');
  const { id: jobId } = answer.execution.job;
  const { state } = await loadJob(it.log, jobId);
  assert.ok(state.status === 'completed' && state.receipt !== null);
  const { started, completed, receipt } = state;
  const job: StoredJob = {
    jobId,
    receiptId: receipt.receiptId,
    status: completed.status,
    responseStatus: completed.responseStatus,
    method: started.method,
    attempts: completed.attempts,
    decisionId: started.decisionId,
    targetCommitment: started.commitments.target_url,
    payment: started.payment,
  };
  const keys = keyDirectory(it.deps);
  return {
    it,
    job,
    receipt: { id: receipt.receiptId, jobId, jws: receipt.jws },
    deps: {
      log: it.log,
      keys,
      primitives,
      transparency: noTransparency,
      clock: it.clock,
      reachedHead: async () => true,
    },
  };
}

const failed = ({ checks }: Awaited<ReturnType<typeof verifyStored>>) =>
  checks.filter(({ ok }) => !ok).map(({ name }) => name);

test('a retained job verifies in all 17 checks, its chain rebuilt from the log', async () => {
  const { deps, job, receipt } = await stored();
  const report = await verifyStored(deps, receipt, job);
  assert.deepEqual([report.ok, report.signatureVerified, failed(report)], [true, true, []]);
  assert.equal(report.checks.length, 17);
  assert.deepEqual([report.jobId, report.receiptId], [job.jobId, receipt.id]);
});

test('a job that is no longer retained: the seven checks of the receipt alone, without reading its stream', async () => {
  const { deps, receipt } = await stored();
  const log = { ...deps.log, readStream: () => Promise.reject(new Error('read')) };
  await deps.keys.list();
  const report = await verifyStored({ ...deps, log }, receipt, null);
  assert.deepEqual([report.ok, report.checks.length], [true, 7]);
});

for (const [what, change, check] of [
  ['status', { status: 'failed' }, 'status_matches'],
  ['method', { method: 'DELETE' }, 'method_matches'],
  ['count of attempts', { attempts: 1 }, 'attempts_match'],
  ['decision', { decisionId: 'dec_1' }, 'decision_matches'],
  ['payment', { payment: null }, 'payment_matches'],
  ['target', { targetCommitment: 'A'.repeat(43) }, 'target_matches'],
  ['receipt', { receiptId: null }, 'job_links_receipt'],
] as [string, Partial<StoredJob>, string][]) {
  test(`a read model with another ${what}: ${check} fails, and nothing else`, async () => {
    const { deps, job, receipt } = await stored();
    assert.deepEqual(failed(await verifyStored(deps, receipt, { ...job, ...change })), [check]);
  });
}

test('a log whose events were edited: event_chain_matches fails', async () => {
  const { deps, job, receipt } = await stored();
  const events = await deps.log.readStream(`job-${job.jobId}`);
  const edited = events.map((event) =>
    event.type === 'JobStarted' ? { ...event, data: { ...event.data, owner: 'other' } } : event,
  );
  const log = { ...deps.log, readStream: async () => edited };
  await deps.keys.list();
  assert.deepEqual(failed(await verifyStored({ ...deps, log }, receipt, job)), ['event_chain_matches']);
});

test('a receipt under another job’s id: payload_job_id and receipt_links_job fail', async () => {
  const { it, deps, receipt } = await stored();
  const other = await stored(paidWith(otherPayment(), { key: 'k2' }), it);
  const crossed = await verifyStored(deps, { ...receipt, jobId: other.job.jobId }, other.job);
  assert.equal(crossed.ok, false);
  for (const name of [
    'payload_job_id',
    'receipt_links_job',
    'job_links_receipt',
    'event_chain_matches',
  ] as const)
    assert.ok(failed(crossed).includes(name), name);
});

test('a key that the log does not know: signature_valid and key_valid_at_issue fail', async () => {
  const { deps, job, receipt } = await stored();
  const none = async () => [];
  const report = await verifyStored({ ...deps, keys: { list: none, refresh: none } }, receipt, job);
  assert.deepEqual(failed(report), ['signature_valid', 'key_valid_at_issue']);
});

test('the chain covers a job’s events up to and with JobCompleted', async () => {
  const { it, job } = await stored();
  const events = await it.log.readStream(`job-${job.jobId}`);
  const types = (list: readonly { readonly type: string }[]) => list.map(({ type }) => type);
  assert.deepEqual(types(upToCompletion(events)), [
    'JobStarted',
    'AttemptMade',
    'AttemptMade',
    'JobCompleted',
  ]);
  const running = events.slice(0, 2);
  assert.deepEqual(upToCompletion(running), running);
});

test('the log is away: event_log_unavailable, it does not call a receipt bad; nothing else is taken for that', async () => {
  const { it, deps, job, receipt } = await stored();
  await deps.keys.list();
  it.log.setAway(true);
  await assert.rejects(verifyStored(deps, receipt, job), (thrown: unknown) => {
    assert.ok(thrown instanceof Fault && thrown.cause instanceof EventLogUnavailable);
    assert.deepEqual([thrown.code, thrown.retryAfterSeconds], ['event_log_unavailable', 5]);
    return true;
  });
  assert.equal((await verifyStored(deps, receipt, null)).ok, true);
  const log = { ...deps.log, readStream: () => Promise.reject(new TypeError('of ours')) };
  await assert.rejects(verifyStored({ ...deps, log }, receipt, job), TypeError);
});
