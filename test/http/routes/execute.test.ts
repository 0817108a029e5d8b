import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALLOWED, Fault } from '#src/domain/refusal.ts';
import type { ExecutionResponse } from '#src/http/response/execution-response.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { BASE, execution, fakeWorld, JOB, JWS, RECEIPT } from '#test/support/world/http-deps.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const PATH = '/api/execute/webhook';
const REQUEST = { url: 'https://a.example/hook', body: { n: 1 } };

test('an execution that succeeded answers 200 with every field of the contract', async () => {
  const transparency = { ...noTransparency, latest: () => 'the newest checkpoint' };
  const response = await clientOf(fakeWorld({ transparency })).post(PATH, REQUEST);
  assert.equal(response.status, 200);
  const { job } = execution();
  assert.deepEqual(await response.json(), {
    mode: 'demo',
    idempotentReplay: false,
    job,
    receipt: { id: RECEIPT, signature: 'ed25519:c2lnbmF0dXJl', replay: false, jws: JWS, keyId: 'key-1' },
    payment: null,
    disclosures: execution().disclosures,
    checkpoint: 'the newest checkpoint',
    links: {
      job: `${BASE}/api/jobs/${JOB}`,
      receipt: `${BASE}/api/receipts/${RECEIPT}`,
      verifyJob: `${BASE}/api/verify/jobs/${JOB}`,
      verifyReceipt: `${BASE}/api/verify/receipts/${RECEIPT}`,
      proof: `${BASE}/proof/${JOB}`,
    },
  });
});

test('a target that failed answers 502 with the full execution response', async () => {
  const job = { ...execution().job, status: 'failed', responseStatus: 503 } as const;
  const world = fakeWorld({
    execute: async () => execution({ job: { ...job, errorCategory: 'target_server_error' } }),
  });
  const response = await clientOf(world).post(PATH, REQUEST);
  assert.equal(response.status, 502);
  const body = (await response.json()) as { job: { status: string }; receipt: { jws: string } };
  assert.equal(body.job.status, 'failed');
  assert.equal(body.receipt.jws, JWS);
});

test('a replay says so twice, names its decision and shows of the payment what the contract lists', async () => {
  const payment = {
    scheme: 'exact',
    network: 'eip155:8453',
    asset: '0xa',
    amount: '3000',
    payTo: '0xb',
    payer: '0xc',
    transaction: null,
    payloadHash: '6'.repeat(64),
  };
  const job = { ...execution().job, decisionId: 'dec_0000000000000000000000000d' };
  const world = fakeWorld({ execute: async () => execution({ replay: true, mode: 'x402', payment, job }) });
  const response = await clientOf(world).post(PATH, REQUEST);
  const body = (await response.json()) as typeof ExecutionResponse.static;
  const { scheme: _, payloadHash: __, ...shown } = payment;
  assert.deepEqual(body.payment, shown);
  assert.equal(body.idempotentReplay, true);
  assert.equal(body.receipt.replay, true);
  assert.equal(body.links.decision, `${BASE}/api/decisions/dec_0000000000000000000000000d`);
});

test('the use case gets the request as sent, the payer, a key of the client address and the Via header', async () => {
  const world = fakeWorld();
  await clientOf(world).post(PATH, REQUEST, { via: '1.1 somebody' });
  assert.deepEqual(world.executed, [
    {
      request: REQUEST,
      route: 'execute/webhook',
      decisionId: null,
      decisionHash: null,
      approval: ALLOWED,
      presented: null,
      payer: 'demo',
      client: 'key of 198.51.100.7',
      via: '1.1 somebody',
      returnsResponse: false,
    },
  ]);
});

test('the answer does not wait for the read models', async () => {
  const never = fakeWorld({
    progress: {
      caughtUp: () => new Promise(() => undefined),
      reachedHead: () => new Promise(() => undefined),
    },
  });
  assert.equal((await clientOf(never).post(PATH, REQUEST)).status, 200);
});

test('a fault answers 503 with Retry-After, its message and the link of the job it names', async () => {
  const cause = new Error('secret of the log');
  const world = fakeWorld({
    execute: async () => {
      const options = { cause, retryAfterSeconds: 7, details: { jobId: JOB } };
      throw new Fault('event_log_unavailable', 'The event log is unavailable.', options);
    },
  });
  const response = await clientOf(world).post(PATH, REQUEST);
  assert.equal(response.headers.get('retry-after'), '7');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const { status, code, details } = await errorOf(response);
  assert.deepEqual([status, code], [503, 'event_log_unavailable']);
  assert.deepEqual(details, { jobId: JOB, links: { job: `${BASE}/api/jobs/${JOB}` } });
  assert.deepEqual(
    world.log.lines.map(({ level, fields }) => [level, (fields as { cause: unknown }).cause]),
    [['warn', cause]],
  );
});

test('body_is_json: a body under a content type that is not JSON, in the answer of an execution, of a replay too', async () => {
  const form = { ...REQUEST, headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'a=b' };
  for (const replay of [false, true]) {
    const client = clientOf(fakeWorld({ execute: async () => execution({ replay }) }));
    const { warnings } = (await (await client.post(PATH, form)).json()) as typeof ExecutionResponse.static;
    assert.deepEqual(
      warnings?.map(({ code }) => code),
      ['body_is_json'],
    );
  }
});
