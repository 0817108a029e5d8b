// What the guided route has of its own; all that it shares with the other paid route is in paid.test.ts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refused } from '#src/domain/refusal.ts';
import type { GuidedResponse } from '#src/http/response/execution-response.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { BASE, decided, fakeWorld, guided } from '#test/support/world/http-deps.ts';

const PATH = '/api/execute/guided-webhook';
const { decisionId } = decided();
const action = { url: 'https://a.example/hook', method: 'PUT', idempotencyKey: 'k' };

test('the answer is that of an execution, and names the decision', async () => {
  const client = clientOf(fakeWorld());
  const response = await client.post(PATH, { decisionId, action });
  assert.equal(response.status, 200);
  const { decision, ...execution } = (await response.json()) as typeof GuidedResponse.static;
  const link = `${BASE}/api/decisions/${decisionId}`;
  assert.deepEqual(decision, {
    id: decisionId,
    recommendation: 'pay_and_execute',
    confidence: 'high',
    links: { decision: link },
  });
  const direct = fakeWorld({ execute: async () => guided().execution });
  const plain = await clientOf(direct).post('/api/execute/webhook', action);
  assert.deepEqual(execution, await plain.json());
  assert.equal(execution.links.decision, link);
});

test('the use case gets the decision, the action as sent, the payer, a key of the client address and the Via header', async () => {
  const world = fakeWorld();
  await clientOf(world).post(PATH, { decisionId, action }, { via: '1.1 somebody' });
  assert.deepEqual(world.executedGuided, [
    {
      decisionId,
      action,
      presented: null,
      payer: 'demo',
      client: 'key of 198.51.100.7',
      via: '1.1 somebody',
      returnsResponse: false,
    },
  ]);
  assert.equal(world.executed.length, 0);
});

test('decision_not_found is 404, a decision that does not approve the call is 409', async () => {
  for (const [code, status] of [
    ['decision_not_found', 404],
    ['decision_not_approved', 409],
    ['decision_expired', 409],
    ['decision_action_mismatch', 409],
  ] as const) {
    const world = fakeWorld({ executeGuided: async () => refused(code, 'It does not.') });
    const error = await errorOf(await clientOf(world).post(PATH, { decisionId, action }));
    assert.deepEqual([error.status, error.code], [status, code]);
  }
});

test('invalid_request: unknown properties, and an action that the other route would not take', async () => {
  const client = clientOf(fakeWorld());
  const cases: [unknown, string[]][] = [
    [{}, ['/action', '/decisionId']],
    [{ decisionId, action, more: 1 }, ['/more']],
    [{ decisionId, action: { ...action, more: 1 } }, ['/action/more']],
    [{ decisionId, action: { ...action, url: 'http://a.example/' } }, ['/action/url']],
    [{ decisionId, action: { ...action, retry: { attempts: 4 } } }, ['/action/retry/attempts']],
    [{ decisionId: '', action }, ['/decisionId']],
    [{ decisionId: 'd'.repeat(65), action }, ['/decisionId']],
    [{ decisionId: 7, action }, ['/decisionId']],
    [{ decisionId, action: null }, ['/action']],
  ];
  for (const [body, expected] of cases) {
    const { status, code, details } = await errorOf(await client.post(PATH, body));
    assert.deepEqual([status, code], [400, 'invalid_request'], JSON.stringify(body));
    assert.deepEqual((details as { path: string }[]).map((fault) => fault.path).sort(), expected);
  }
});
