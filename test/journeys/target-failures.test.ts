// The target fails: a recorded, receipted outcome, answered with 502, replayed unchanged and not retried.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Service } from '#test/support/service.ts';
import { assertVerifiesOffline, payloadOf } from '#test/support/service-receipts.ts';
import { closedPort, execute, get, makeWorld, type Report, type World } from '#test/support/service-world.ts';
import type { Handler } from '#test/support/tls-target.ts';

let world: World;
let service: Service;

type Failure = {
  readonly name: string;
  readonly handler?: Handler;
  readonly url?: () => string;
  readonly request?: Readonly<Record<string, unknown>>;
  readonly category: string;
  readonly status: number | null;
  readonly attempts: number;
  /** Of each attempt. */
  readonly sent: 'no' | 'maybe' | 'yes';
  /** At the target. */
  readonly requests: number;
};

const hang: Handler = () => new Promise<undefined>(() => undefined);
let nobodysPort = 0;

const failures: readonly Failure[] = [
  {
    name: 'answers 500, three attempts',
    handler: () => ({ status: 500 }),
    request: { retry: { attempts: 3, backoffMs: 0 } },
    category: 'target_server_error',
    status: 500,
    attempts: 3,
    sent: 'yes',
    requests: 3,
  },
  {
    name: 'redirects, three attempts allowed',
    handler: () => ({ status: 307, headers: { location: world.target.url('/elsewhere') } }),
    request: { retry: { attempts: 3, backoffMs: 0 } },
    category: 'target_redirect',
    status: 307,
    attempts: 1,
    sent: 'yes',
    requests: 1,
  },
  {
    name: 'is not there',
    url: () => `https://target.test:${nobodysPort}/hook`,
    request: { retry: { attempts: 2, backoffMs: 0 } },
    category: 'connect_error',
    status: null,
    attempts: 2,
    sent: 'no',
    requests: 0,
  },
  {
    name: 'never answers, timeoutMs 1000, three attempts',
    handler: hang,
    request: { timeoutMs: 1000, retry: { attempts: 3, backoffMs: 10 } },
    category: 'timeout',
    status: null,
    attempts: 3,
    sent: 'maybe',
    requests: 3,
  },
  {
    name: 'answers 404',
    handler: () => ({ status: 404 }),
    request: { retry: { attempts: 3, backoffMs: 0 } },
    category: 'target_client_error',
    status: 404,
    attempts: 1,
    sent: 'yes',
    requests: 1,
  },
];

describe('a target that fails', () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
    nobodysPort = await closedPort();
  });
  after(() => world.end());

  for (const failure of failures) {
    test(`${failure.name}: 502 ${failure.category}, receipt, replay, ${failure.requests} requests`, async () => {
      const { target } = world;
      target.answer(failure.handler ?? (() => ({})));
      const before = target.requests.length;
      const url = failure.url?.() ?? target.url(`/${failure.category}`);
      const request = { url, body: { a: 1 }, idempotencyKey: failure.name, ...failure.request };
      const { status, body } = await execute(service, request);
      const { id, createdAt, completedAt } = body.job;
      assert.equal(status, 502);
      assert.deepEqual(body.job, {
        id,
        status: 'failed',
        attempts: failure.attempts,
        decisionId: null,
        responseStatus: failure.status,
        errorCategory: failure.category,
        createdAt,
        completedAt,
      });
      const payload = payloadOf(body.receipt.jws);
      assert.deepEqual(
        payload.attempts.map(({ n, sent, outcome, status, errorCategory }) => ({
          n,
          sent,
          outcome,
          status,
          errorCategory,
        })),
        Array.from({ length: failure.attempts }, (_, i) => ({
          n: i + 1,
          sent: failure.sent,
          outcome: 'failed',
          status: failure.status,
          errorCategory: failure.category,
        })),
      );
      const report = await get<Report>(body.links.verifyJob ?? '');
      assert.deepEqual([report.status, report.body.ok, report.body.checks.length], [200, true, 18]);
      await assertVerifiesOffline(body.receipt.jws, (await get(`${service.url}/.well-known/jwks.json`)).body);
      const again = await execute(service, request);
      assert.equal(again.status, 502);
      assert.deepEqual(
        [again.body.job, again.body.receipt, again.body.idempotentReplay],
        [body.job, { ...body.receipt, replay: true }, true],
      );
      const got = target.requests.slice(before);
      assert.equal(got.length, failure.requests);
      for (const { headers } of got) {
        assert.deepEqual([headers['webhook-id'], headers['idempotency-key']], [id, id]);
      }
    });
  }

  test('monitoring lists the failures, newest first, and reports attention', async () => {
    const { body } = await get<{
      ok: boolean;
      status: string;
      failureRate: number;
      stats: Record<string, unknown>;
      recentFailures: { errorCategory: string }[];
    }>(`${service.url}/api/monitoring/executions`);
    assert.deepEqual([body.ok, body.status, body.failureRate, body.stats.failed], [false, 'attention', 1, 5]);
    assert.deepEqual(
      body.recentFailures.map(({ errorCategory }) => errorCategory),
      failures.map(({ category }) => category).reverse(),
    );
  });
});
