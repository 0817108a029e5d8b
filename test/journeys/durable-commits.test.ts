// How often an execution waits for the disk, counted at the embedded log.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { demoPayments } from '#src/adapters/payments/demo.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { ALLOWED, isRefused } from '#src/domain/refusal.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';
import { shared, world } from '#test/support/world/fakes-world.ts';

/** Appends made durable by each commit, over one execution. */
async function commitsOf(request: Partial<WebhookRequest>): Promise<{ commits: number[]; types: string[] }> {
  const directory = logDirectory();
  const commits: number[] = [];
  const log = await sqliteEventLog({ file: directory.file, onCommit: (appends) => commits.push(appends) });
  try {
    const { deps } = world(shared(), { log, payments: demoPayments() });
    const execution = await executeWebhook(deps, {
      request: { url: 'https://target.example/hook', ...request },
      route: 'execute/webhook',
      decisionId: null,
      decisionHash: null,
      approval: ALLOWED,
      presented: null,
      payer: 'demo',
      client: '198.51.100.1',
      via: null,
    });
    assert.ok(!isRefused(execution));
    assert.equal(execution.job.status, 'succeeded');
    const events = await log.readAll({ after: null, max: 100 });
    return { commits, types: events.map(({ type }) => type) };
  } finally {
    await log.close();
    directory.remove();
  }
}

const JOB = ['JobStarted', 'AttemptMade', 'JobCompleted', 'ReceiptSigned'];

describe('durable commits of one execution', () => {
  test('one attempt without a key: two', async () => {
    assert.deepEqual(await commitsOf({}), { commits: [1, 1], types: JOB });
  });

  test('with a key: three', async () => {
    assert.deepEqual(await commitsOf({ idempotencyKey: 'k' }), {
      commits: [1, 1, 1],
      types: ['IdempotencyKeyClaimed', ...JOB],
    });
  });
});
