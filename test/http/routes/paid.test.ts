// Payment at the paid routes: what is asked when, and what every answer says of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault, refused } from '#src/domain/refusal.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { fakeProtocol, GARBAGE, PAID, UNREADABLE } from '#test/support/chain/fakes-protocol.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import {
  countingQuota,
  decided,
  fakeWorld,
  guided,
  JOB,
  paidExecution,
} from '#test/support/world/http-deps.ts';

const REQUEST = { url: 'https://a.example/hook', body: { n: 1 } };
const { decisionId } = decided();
const ROUTES = [
  { route: 'execute/webhook', path: '/api/execute/webhook', good: REQUEST, required: ['/url'] },
  {
    route: 'execute/guided-webhook',
    path: '/api/execute/guided-webhook',
    good: { decisionId, action: REQUEST },
    required: ['/decisionId', '/action'],
  },
] as const;
const { path: PATH } = ROUTES[0];

const settings = { mode: 'x402' } as const;

/** `answer`: of both paid routes. */
function paidWorld(answer: () => Execution = () => paidExecution(), trace: string[] = []) {
  const payments = fakeProtocol(trace);
  const world = fakeWorld({
    settings,
    payments,
    quota: countingQuota(),
    async execute() {
      trace.push('execute');
      return answer();
    },
    async executeGuided() {
      trace.push('execute');
      const { decision } = guided();
      return { decision, execution: answer() };
    },
  });
  return { world, payments, client: clientOf(world), trace };
}

type Challenge = { error: string; accepts: unknown[]; validation?: { path: string; message: string }[] };

async function challengeOf(response: Response): Promise<Challenge> {
  assert.equal(response.status, 402);
  assert.ok(response.headers.get('payment-required'));
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.ok(response.headers.get('x-request-id'));
  const body = (await response.json()) as Challenge;
  assert.equal(body.accepts.length, 1);
  return body;
}

const steps = (trace: string[]) => trace.splice(0).filter((step, at, all) => step !== all[at - 1]);

for (const { route, path, good, required } of ROUTES) {
  test(`${route}: a probe with an empty body is answered 402 with both challenges and what a call needs`, async () => {
    const { client, world, payments } = paidWorld();
    for (const init of [{}, { body: '' }, { body: '{}', headers: { 'content-type': 'application/json' } }]) {
      const challenge = await challengeOf(await client.call(path, { method: 'POST', ...init }));
      assert.equal(challenge.error, 'payment_required');
      assert.deepEqual(
        challenge.validation?.map((hint) => hint.path),
        required,
      );
    }
    assert.deepEqual(
      payments.challenged.map((ask) => ask.route),
      [route, route, route],
    );
    assert.equal(world.executed.length + world.executedGuided.length, 0);
  });

  test(`${route}: without a payment the body is judged by nothing but hints, of which a good one gets none`, async () => {
    const { client } = paidWorld();
    assert.equal((await challengeOf(await client.post(path, good))).validation, undefined);
    const { validation: notJson = [] } = await challengeOf(await client.post(path, '{'));
    assert.deepEqual(
      notJson.map((hint) => hint.path),
      [''],
    );
    const untyped = { method: 'POST', body: JSON.stringify(good), headers: { 'content-type': 'text/plain' } };
    assert.equal((await challengeOf(await client.call(path, untyped))).validation?.length, 1);
    const strangers = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`${i}${'n'.repeat(999)}`, 1]),
    );
    const bounded = await challengeOf(await client.post(path, { ...good, ...strangers }));
    assert.ok(JSON.stringify(bounded).length < 16 * 1024);
  });

  test(`${route}: what is asked in which order`, async () => {
    const { client, trace } = paidWorld();
    const tooLarge = 'x'.repeat(128 * 1024 + 1);
    const cases = [
      [tooLarge, PAID[2], 413, []],
      ['{', {}, 402, ['isPresented', 'challenge']],
      ['{', PAID[2], 400, ['isPresented']],
      [{ ...good, surprise: 1 }, PAID[2], 400, ['isPresented']],
      [{ ...good, surprise: 1 }, GARBAGE, 400, ['isPresented']],
      [good, GARBAGE, 402, ['isPresented', 'read', 'challenge']],
      [good, PAID[2], 200, ['isPresented', 'read', 'execute', 'settled']],
    ] as const;
    for (const [body, headers, status, expected] of cases) {
      assert.equal((await client.post(path, body, headers)).status, status);
      assert.deepEqual(steps(trace), expected);
    }
  });

  test(`${route}: a header Idempotency-Key without a key is refused before a payment is asked for`, async () => {
    const { client, trace } = paidWorld();
    for (const headers of [{}, PAID[2]])
      for (const body of ['', good]) {
        const answer = await client.post(path, body, { ...headers, 'idempotency-key': 'a'.repeat(161) });
        const { status, code } = await errorOf(answer);
        assert.deepEqual([status, code, steps(trace)], [400, 'invalid_request', []]);
      }
  });

  test(`${route}: what a body that fits its schema would be refused for is a hint of the 402`, async () => {
    const { client } = paidWorld();
    const isGuided = route === 'execute/guided-webhook';
    for (const [change, headers, place] of [
      [{ idempotencyKey: 'k' }, { 'idempotency-key': 'other' }, '/idempotencyKey'],
      [{ headers: { 'no token': '1' } }, {}, '/headers'],
    ] as const) {
      const action = { ...REQUEST, ...change };
      const answer = await client.post(path, isGuided ? { decisionId, action } : action, headers);
      const { validation = [] } = await challengeOf(answer);
      assert.deepEqual(
        validation.map((hint) => hint.path),
        [`${isGuided ? '/action' : ''}${place}`],
      );
    }
  });

  test(`${route}: an unreadable payment for a good body is answered 402 with the reason`, async () => {
    const { client, world } = paidWorld();
    const challenge = await challengeOf(await client.post(path, good, GARBAGE));
    assert.equal(challenge.error, UNREADABLE);
    assert.equal(challenge.validation, undefined);
    assert.equal(world.executed.length + world.executedGuided.length, 0);
  });

  test(`${route}: payment_required of the use case is a 402 that can be paid, with its reason`, async () => {
    const payments = fakeProtocol();
    const refuse = async () =>
      refused('payment_required', 'The payment is not valid.', { details: { reason: 'insufficient_funds' } });
    const world = fakeWorld({ settings, payments, execute: refuse, executeGuided: refuse });
    const challenge = await challengeOf(await clientOf(world).post(path, good, PAID[2]));
    assert.equal(challenge.error, 'insufficient_funds');
    assert.deepEqual(payments.challenged, [
      { route, reason: 'insufficient_funds', message: 'The payment is not valid.', hints: [] },
    ]);
  });

  test(`${route}: 200, 502 and replays report the settlement, each payer in its own version`, async () => {
    const failed = { ...paidExecution().job, status: 'failed' } as const;
    const answers = [
      [paidExecution(), 200, true],
      [paidExecution({ job: failed }), 502, false],
      [paidExecution({ replay: true }), 200, true],
      [paidExecution({ replay: true, job: failed }), 502, false],
    ] as const;
    for (const [execution, status, delivered] of answers) {
      for (const x402Version of [1, 2] as const) {
        const { client, payments } = paidWorld(() => execution);
        const response = await client.post(path, good, PAID[x402Version]);
        assert.equal(response.status, status);
        const { payment, job } = execution;
        assert.deepEqual(payments.settlements, [
          { route, payment, x402Version, delivered, completedAt: job.completedAt },
        ]);
        const settled = response.headers.get('payment-response');
        assert.ok(settled);
        assert.equal(response.headers.get('x-payment-response'), x402Version === 1 ? settled : null);
        assert.equal(response.headers.get('cache-control'), 'no-store');
      }
    }
  });

  test(`${route}: refusals and faults of a paid call keep the error body and carry no payment header`, async () => {
    const inProgress = refused('idempotency_in_progress', 'still running', { details: { jobId: JOB } });
    const unconfirmed = new Fault('payment_unconfirmed', 'Repeat with the same payment header.', {
      details: { jobId: JOB },
    });
    const away = new Fault('facilitator_unavailable', 'Nothing was charged.', { retryAfterSeconds: 7 });
    const cases = [
      [async () => inProgress, 409, 'idempotency_in_progress', '1'],
      [async () => refused('payment_reused', 'Pay again.'), 409, 'payment_reused', null],
      [async () => refused('too_many_in_flight', 'Later.'), 429, 'too_many_in_flight', '1'],
      [() => Promise.reject(unconfirmed), 503, 'payment_unconfirmed', '5'],
      [() => Promise.reject(away), 503, 'facilitator_unavailable', '7'],
    ] as const;
    for (const [execute, status, code, retryAfter] of cases) {
      const payments = fakeProtocol();
      const world = fakeWorld({ settings, payments, execute, executeGuided: execute });
      const response = await clientOf(world).post(path, good, PAID[2]);
      assert.equal(response.headers.get('retry-after'), retryAfter);
      assert.equal(response.headers.get('cache-control'), 'no-store');
      assert.ok(response.headers.get('x-request-id'));
      for (const name of ['payment-response', 'x-payment-response', 'payment-required'])
        assert.equal(response.headers.get(name), null);
      const error = await errorOf(response);
      assert.deepEqual([error.status, error.code], [status, code]);
      // a facilitator's outage is no failure of ours: a word for the operator, without a stack
      const lines = world.log.lines.map(({ level, fields }) => [level, Object.keys(fields ?? {})]);
      assert.deepEqual(lines, status === 503 ? [['warn', ['requestId', 'code']]] : []);
      const { jobId, links } = (error.details ?? {}) as { jobId?: string; links?: { job: string } };
      if (jobId !== undefined) assert.match(links?.job ?? '', new RegExp(`/api/jobs/${JOB}$`));
    }
  });
}

test('the use case gets the payment and its payer', async () => {
  const { client, world } = paidWorld();
  const { path, good } = ROUTES[1];
  await client.post(PATH, REQUEST, { ...PAID[1], via: '1.1 somebody' });
  await client.post(path, good, PAID[2]);
  const { payer } = presentedPayment();
  const [direct, byDecision] = [world.executed[0], world.executedGuided[0]];
  assert.deepEqual([direct?.payer, direct?.presented?.x402Version], [payer, 1]);
  assert.deepEqual([byDecision?.payer, byDecision?.presented?.x402Version], [payer, 2]);
});

test('an empty payment header is none', async () => {
  const { client, trace } = paidWorld();
  for (const headers of [{ 'payment-signature': '' }, { 'x-payment': '  ' }]) {
    assert.equal((await challengeOf(await client.post(PATH, REQUEST, headers))).error, 'payment_required');
    assert.deepEqual(steps(trace), ['isPresented', 'challenge']);
  }
  assert.equal((await client.post(PATH, REQUEST, { 'payment-signature': '', ...PAID[1] })).status, 200);
});

test('both payment headers: the answer is in the version that was read', async () => {
  const { client, payments } = paidWorld();
  const response = await client.post(PATH, REQUEST, { ...PAID[1], ...PAID[2] });
  assert.equal(response.status, 200);
  assert.deepEqual(
    payments.settlements.map(({ x402Version }) => x402Version),
    [2],
  );
});

test('over the rate: rate_limited before payment is asked for, one rate for both paid routes', async () => {
  const trace: string[] = [];
  const world = fakeWorld({ settings, payments: fakeProtocol(trace), quota: countingQuota(2) });
  const client = clientOf(world);
  for (const { path, good } of ROUTES) await challengeOf(await client.post(path, good));
  trace.length = 0;
  for (const { path, good } of ROUTES) {
    const { status, code } = await errorOf(await client.post(path, good, PAID[2]));
    assert.deepEqual([status, code], [429, 'rate_limited']);
  }
  assert.deepEqual(trace, []);
});

test('free routes ask for no payment', async () => {
  const { client, trace } = paidWorld();
  assert.equal((await client.post('/api/policy/check', REQUEST)).status, 200);
  assert.equal((await client.post('/api/policy/check', REQUEST, GARBAGE)).status, 200);
  assert.deepEqual(trace, []);
});

test('demo mode: a payment header is ignored, and no answer mentions payment', async () => {
  for (const { path, good } of ROUTES) {
    const response = await clientOf(fakeWorld()).post(path, good, GARBAGE);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('payment-response'), null);
  }
});

test('a job that was not paid for is answered without a payment header', async () => {
  const { client, payments } = paidWorld(() => paidExecution({ payment: null }));
  const response = await client.post(PATH, REQUEST, PAID[2]);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('payment-response'), null);
  assert.equal(payments.settlements.length, 0);
});

test('who has paid gets the result, also where its payment header cannot be made', async () => {
  const cause = new Error('no key');
  const payments = { ...fakeProtocol(), settled: () => Promise.reject(cause) };
  const world = fakeWorld({ settings, payments, execute: async () => paidExecution() });
  const response = await clientOf(world).post(PATH, REQUEST, PAID[2]);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('payment-response'), null);
  assert.deepEqual(
    world.log.lines.map(({ level, fields }) => [level, (fields as { cause: unknown }).cause]),
    [['bug', cause]],
  );
});
