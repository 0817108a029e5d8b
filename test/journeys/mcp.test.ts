// An agent with the SDK's stock client at the real service in demo mode: decide, execute, verify; repeats and failures of
// the target; calls over MCP are visible over HTTP.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connectMcp, type McpClient } from '#test/support/mcp-client.ts';
import type { Service } from '#test/support/service.ts';
import {
  type Executed,
  execute,
  get,
  makeWorld,
  type Report,
  type World,
} from '#test/support/service-world.ts';

let world: World;
let service: Service;
let client: McpClient;

const hits = (path: string) => world.target.requests.filter((request) => request.path === path).length;

async function executed(name: string, args: Record<string, unknown>): Promise<Executed> {
  const { isError, structured, text, settlement } = await client.call(name, args);
  assert.deepEqual([isError, settlement], [false, null], text);
  return structured as Executed;
}

describe('an MCP client in demo mode', () => {
  before(async () => {
    world = await makeWorld({
      handler: ({ path }) => ({ status: path === '/fails' ? 500 : 200, body: '{}' }),
    });
    service = await world.start();
    client = await connectMcp(`${service.url}/mcp`);
  });
  after(async () => {
    await client?.sdk.close();
    await world?.end();
  });

  test('decide, execute the approved action, verify: one request at the target, every check ok', async () => {
    const action = { url: world.target.url('/guided'), body: { n: 1 }, idempotencyKey: 'guided-1' };
    const decided = await client.call('decide_webhook', { action, buyerPolicy: { minTrustScore: 0 } });
    const { decisionId, recommendation } = decided.structured;
    assert.deepEqual([decided.isError, recommendation], [false, 'pay_and_execute'], decided.text);
    assert.equal(hits('/guided'), 0);
    const { job, receipt, mode } = await executed('execute_guided_webhook', { decisionId, action });
    assert.deepEqual(
      [mode, job.status, job.decisionId, hits('/guided')],
      ['demo', 'succeeded', decisionId, 1],
    );
    const report = (await client.call('verify_receipt', { id: receipt.id })).structured as Report;
    assert.deepEqual([report.ok, report.signatureVerified, report.jobId], [true, true, job.id]);
    assert.ok(report.checks.length > 10 && report.checks.every(({ ok }) => ok));
    assert.equal((await client.call('get_job', { id: job.id })).structured.receiptId, receipt.id);
    assert.equal((await client.call('get_receipt', { id: receipt.id })).structured.verified, true);
  });

  test('the same call again, over MCP or over HTTP, is the first result: nothing is sent', async () => {
    const request = { url: world.target.url('/once'), idempotencyKey: 'once-1' };
    const first = await executed('execute_webhook', request);
    const again = await executed('execute_webhook', request);
    const { status, body } = await execute(service, request);
    assert.equal(status, 200);
    for (const replay of [again, body]) {
      assert.deepEqual([replay.idempotentReplay, replay.receipt.replay], [true, true]);
      assert.deepEqual(replay.job, first.job);
    }
    assert.equal(hits('/once'), 1);
    const other = await client.call('execute_webhook', { ...request, body: 2 });
    assert.equal(other.isError, true);
    assert.match(other.text, /^idempotency_conflict: /);
  });

  test('a target that fails is a result with its receipt', async () => {
    const { job, receipt } = await executed('execute_webhook', { url: world.target.url('/fails') });
    assert.deepEqual([job.status, job.responseStatus, hits('/fails')], ['failed', 500, 1]);
    assert.equal((await client.call('verify_receipt', { id: receipt.id })).structured.ok, true);
  });

  test('a refused target is an error; its policy check is not', async () => {
    const request = { url: 'https://10.0.0.1/' };
    const { isError, text } = await client.call('execute_webhook', request);
    assert.equal(isError, true);
    assert.match(text, /^unsafe_target: /);
    const checked = await client.call('check_policy', request);
    assert.deepEqual([checked.isError, checked.structured.allowed], [false, false]);
  });

  test('20 calls at once on one key: one request at the target', async () => {
    const request = { url: world.target.url('/racers'), idempotencyKey: 'racers' };
    const results = await Promise.all(
      Array.from({ length: 20 }, () => client.call('execute_webhook', request)),
    );
    const fresh = results.filter(
      ({ isError, structured }) => !isError && structured.idempotentReplay === false,
    );
    assert.deepEqual([fresh.length, hits('/racers')], [1, 1]);
    for (const { isError, structured, text } of results) {
      if (isError) assert.match(text, /^(idempotency_in_progress|too_many_in_flight): /);
      else assert.equal((structured as Executed).job.status, 'succeeded');
    }
  });

  test('the price is stated, and there is no stream and no session', async () => {
    const { structured } = await client.call('get_pricing');
    assert.deepEqual(structured, (await get(`${service.url}/api/pricing`)).body);
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${service.url}/mcp`, {
        method,
        headers: { accept: 'text/event-stream' },
      });
      await response.body?.cancel();
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST, OPTIONS']);
    }
  });
});
