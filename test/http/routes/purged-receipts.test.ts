// A receipt whose row is purged, over HTTP: the log has it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storedReceipts } from '#src/usecases/receipts/stored-receipts.ts';
import { execute } from '#test/support/given/given-call.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { world } from '#test/support/world/fakes-world.ts';
import { fakeWorld, RECEIPT as NEWER } from '#test/support/world/http-deps.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';
import { RECEIPT_CHECKS } from '#test/support/world/service-receipts.ts';

/** Nothing is retained but the receipt's id and its job's. */
async function purged() {
  const it = world();
  const answer = await execute(it);
  assert.ok(answer.kind === 'ran');
  const { job, receipt } = answer.execution;
  const list = () => [it.key.record];
  const rows = {
    receipt: async () => null,
    job: async () => null,
    jobOfReceipt: async (id: string) => (id === receipt.id ? job.id : id === NEWER ? 'newer' : null),
  };
  const stored = storedReceipts(rows, {
    log: it.log,
    keys: { list, refresh: async () => list() },
    primitives,
    transparency: noTransparency,
    clock: it.clock,
    reachedHead: async () => true,
  });
  const client = clientOf(
    fakeWorld({
      reads: { receipt: { find: stored.find, countUnverified: async () => 0 } },
      verifyReceipt: stored.verifyReceipt,
    }),
  );
  return { it, job, receipt, client };
}

test('a purged receipt is answered from the log: the same JWS, verified, with its links', async () => {
  const { job, receipt, client } = await purged();
  const { status, body } = await client.get(`/api/receipts/${receipt.id}`);
  assert.equal(status, 200);
  const { id, jws, verified, links } = body as {
    id: string;
    jws: string;
    verified: boolean;
    links: { job: string };
  };
  assert.deepEqual([id, jws, verified], [receipt.id, receipt.jws, true]);
  assert.ok(links.job.endsWith(`/api/jobs/${job.id}`));
});

test('a purged receipt is verified by the checks of the receipt alone', async () => {
  const { job, receipt, client } = await purged();
  const { status, body } = await client.get(`/api/verify/receipts/${receipt.id}`);
  const report = body as { ok: boolean; jobId: string; checks: { name: string }[] };
  assert.deepEqual([status, report.ok, report.jobId], [200, true, job.id]);
  assert.deepEqual(
    report.checks.map(({ name }) => name),
    RECEIPT_CHECKS,
  );
});

test('a purged receipt that a newer release has written is 503, with the time to repeat it, never 404', async () => {
  const { it, client } = await purged();
  const data = { v: 99, receiptId: NEWER };
  await it.log.append('job-newer', 'no_stream', [newEvent({ type: 'ReceiptSigned', data })]);
  for (const path of ['/api/receipts/', '/api/verify/receipts/']) {
    const answer = await client.call(`${path}${NEWER}`);
    assert.equal(answer.headers.get('retry-after'), '60');
    const { status, code, message } = await errorOf(answer);
    assert.deepEqual([status, code], [503, 'event_log_unavailable']);
    assert.match(message, /^A newer release has written ReceiptSigned version 99 here/);
  }
});

test('without the log a purged receipt is 503, never 404; an id of none is 404', async () => {
  const { it, receipt, client } = await purged();
  const other = receipt.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  for (const path of ['/api/receipts/', '/api/verify/receipts/']) {
    it.log.setAway(false);
    const missing = await errorOf(await client.call(`${path}${other}`));
    assert.deepEqual([missing.status, missing.code], [404, 'receipt_not_found']);
    it.log.setAway(true);
    const away = await errorOf(await client.call(`${path}${receipt.id}`));
    assert.deepEqual([away.status, away.code], [503, 'event_log_unavailable']);
  }
});
