// One webhook, executed and proven: the caller's answer, the target's request, and what anyone can read and verify.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { primitives } from '#test/support/given/primitives.ts';
import type { Service } from '#test/support/process/service.ts';
import {
  assertVerifiesOffline,
  openAll,
  opened,
  payloadOf,
  SERVED_CHECKS,
} from '#test/support/world/service-receipts.ts';
import {
  type Answered,
  type Executed,
  execute,
  get,
  makeWorld,
  type Report,
  type World,
} from '#test/support/world/service-world.ts';

const REQUEST_BODY = { event: 'order.paid', order: 4711, note: 'größer als — 12,50 €' };
const RESPONSE_BODY = '{"accepted":true}';
const KEY = 'order-4711';

let world: World;
let service: Service;
let answer: Answered<Executed>;
let report: Answered<Report>;
let jwks: unknown;

const request = () => ({
  url: world.target.url('/hook/a?b=c'),
  method: 'PUT',
  headers: { 'X-Order-Source': 'journey', 'x-attempt': 1, Connection: 'keep-alive' },
  body: REQUEST_BODY,
  idempotencyKey: KEY,
});

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('one webhook', () => {
  before(async () => {
    world = await makeWorld({ embedded: true, handler: () => ({ status: 202, body: RESPONSE_BODY }) });
    service = await world.start();
    answer = await execute(service, request());
    // Requested once, immediately afterwards: the answer's links work at once.
    report = await get<Report>(answer.body.links.verifyJob ?? '');
    jwks = (await get(`${service.url}/.well-known/jwks.json`)).body;
  });
  after(() => world.end());

  test('the answer: a succeeded job with its receipt and all links', () => {
    const { status, headers, body } = answer;
    assert.equal(status, 200);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.match(headers.get('x-request-id') ?? '', /^[A-Za-z0-9._-]{1,128}$/);
    const { id, createdAt, completedAt } = body.job;
    assert.match(id, /^job_[0-9a-z]{26}$/);
    assert.ok(Date.parse(createdAt) <= Date.parse(completedAt));
    assert.deepEqual(body.job, {
      id,
      status: 'succeeded',
      attempts: 1,
      decisionId: null,
      responseStatus: 202,
      errorCategory: null,
      reason: null,
      createdAt,
      completedAt,
    });
    const { id: receiptId, jws, keyId } = body.receipt;
    const signature = `ed25519:${jws.split('.')[2]}`;
    assert.deepEqual(body.receipt, { id: receiptId, signature, replay: false, jws, keyId });
    assert.deepEqual([body.mode, body.idempotentReplay, body.payment], ['demo', false, null]);
    assert.deepEqual(body.links, {
      job: `${service.url}/api/jobs/${id}`,
      receipt: `${service.url}/api/receipts/${receiptId}`,
      verifyJob: `${service.url}/api/verify/jobs/${id}`,
      verifyReceipt: `${service.url}/api/verify/receipts/${receiptId}`,
      proof: `${service.url}/proof/${id}`,
    });
  });

  test('verified right after the answer: every check by name, every one ok', () => {
    const { job, receipt } = answer.body;
    assert.equal(report.status, 200);
    const { checks, ...rest } = report.body;
    assert.deepEqual(
      checks.map(({ name, ok }) => [name, ok]),
      SERVED_CHECKS.map((name) => [name, true]),
    );
    assert.deepEqual(rest, {
      ok: true,
      receiptId: receipt.id,
      jobId: job.id,
      keyId: receipt.keyId,
      signatureVerified: true,
    });
  });

  test('the target got exactly one request, with the caller’s content and the relay’s identification', async () => {
    const { requests } = world.target;
    assert.equal(requests.length, 1);
    const [got] = requests;
    assert.ok(got);
    const { id } = answer.body.job;
    assert.deepEqual([got.method, got.path, got.servername], ['PUT', '/hook/a?b=c', 'target.test']);
    assert.deepEqual(JSON.parse(got.body.toString('utf8')), REQUEST_BODY);
    const timestamp = got.headers['webhook-timestamp'] ?? '';
    const signature = got.headers['webhook-signature'] ?? '';
    assert.match(timestamp, /^\d{10}$/);
    assert.deepEqual(got.headers, {
      host: `target.test:${world.target.port}`,
      'x-order-source': 'journey',
      'x-attempt': '1',
      'content-type': 'application/json',
      'content-length': String(got.body.length),
      'idempotency-key': id,
      'user-agent': `webhook-relay/0.1.0 (+${service.url})`,
      via: `1.1 ${new URL(service.url).host}`,
      'accept-encoding': 'identity',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
      connection: 'close',
    });
    const { keys } = jwks as { keys: { kid: string; x: string }[] };
    const key = keys.find(({ kid }) => kid === answer.body.receipt.keyId);
    assert.ok(key && signature.startsWith('v1a,'));
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), got.body]);
    const verified = (message: Uint8Array) =>
      primitives.ed25519Verify(
        Buffer.from(key.x, 'base64url'),
        message,
        Buffer.from(signature.slice('v1a,'.length), 'base64'),
      );
    assert.equal(await verified(signed), true);
    assert.equal(await verified(Buffer.concat([signed, Buffer.from(' ')])), false);
  });

  test('the disclosures open exactly the commitments of the receipt', () => {
    const payload = payloadOf(answer.body.receipt.jws);
    const values = openAll(payload, answer.body.disclosures);
    const leaf = values.get('attempt_1_leaf_sha256');
    assert.match(String(leaf), /^[0-9a-f]{64}$/);
    const bytes = world.target.requests[0]?.body ?? '';
    assert.deepEqual(Object.fromEntries(values), {
      target_url: world.target.url('/hook/a?b=c'),
      target_origin: `https://target.test:${world.target.port}`,
      header_names: ['connection', 'x-attempt', 'x-order-source'],
      request_body_sha256: sha256(bytes),
      idempotency_key: KEY,
      response_body_sha256: sha256(RESPONSE_BODY),
      attempt_1_leaf_sha256: leaf,
      attempt_1_address: '127.0.0.1',
    });
    assert.equal(payload.attempts[0]?.exempted, true);
  });

  test('the links: job, receipt and its report, for everyone', async () => {
    const { job, receipt, links } = answer.body;
    const shown = await get<Record<string, unknown>>(links.job ?? '');
    assert.equal(shown.status, 200);
    const { id, status, method, attempts, responseStatus, receiptId } = shown.body;
    assert.deepEqual(
      { id, status, method, attempts, responseStatus, receiptId },
      {
        id: job.id,
        status: 'succeeded',
        method: 'PUT',
        attempts: 1,
        responseStatus: 202,
        receiptId: receipt.id,
      },
    );
    const kept = await get<Record<string, unknown>>(links.receipt ?? '');
    assert.deepEqual(
      [kept.status, kept.body.jws, kept.body.verified, kept.body.payload],
      [200, receipt.jws, true, payloadOf(receipt.jws)],
    );
    const checked = await get<Report>(links.verifyReceipt ?? '');
    assert.deepEqual([checked.status, untimed(checked.body)], [200, untimed(report.body)]);
  });

  test('a repeat with the same key is the same job and receipt, and nothing is sent', async () => {
    const again = await execute(service, request());
    const { job, receipt, mode, payment, links, disclosures } = answer.body;
    assert.equal(again.status, 200);
    const ofRequest = disclosures.filter(
      (text) => !/^(response|attempt)_/.test([...opened([text]).keys()][0] ?? ''),
    );
    assert.equal(ofRequest.length, 5);
    const { checkpoint, ...repeated } = again.body;
    assert.equal(typeof checkpoint, 'string');
    assert.deepEqual(repeated, {
      mode,
      payment,
      links,
      job,
      idempotentReplay: true,
      receipt: { ...receipt, replay: true },
      disclosures: ofRequest,
    });
    assert.equal(world.target.requests.length, 1);
  });

  test('public proofs, monitoring and trust count it', async () => {
    const { job, receipt, links } = answer.body;
    const { body: recent } = await get<{ ok: boolean; proofs: Record<string, unknown>[] }>(
      `${service.url}/api/proofs/recent`,
    );
    const [proof] = recent.proofs;
    assert.deepEqual([recent.ok, recent.proofs.length], [true, 1]);
    assert.ok(proof);
    assert.deepEqual(proof, {
      jobId: job.id,
      receiptId: receipt.id,
      status: 'succeeded',
      method: 'PUT',
      attempts: 1,
      responseStatus: 202,
      responseOk: true,
      receiptVerified: true,
      errorCategory: null,
      createdAt: job.createdAt,
      updatedAt: proof.updatedAt,
      publicFieldsOnly: true,
      links: {
        job: links.job,
        receipt: links.receipt,
        verifyJob: links.verifyJob,
        verifyReceipt: links.verifyReceipt,
      },
    });
    const { body: monitoring } = await get<Record<string, unknown>>(
      `${service.url}/api/monitoring/executions`,
    );
    const stats = {
      total: 1,
      succeeded: 1,
      failed: 0,
      running: 0,
      recentTotal: 1,
      recentSucceeded: 1,
      recentFailed: 0,
      recentRunning: 0,
      lastUpdatedAt: (monitoring.stats as Record<string, unknown>).lastUpdatedAt,
    };
    assert.deepEqual(
      [monitoring.ok, monitoring.status, monitoring.failureRate, monitoring.stats, monitoring.recentFailures],
      [true, 'ok', 0, stats, []],
    );
    const { body: trust } = await get<Record<string, Record<string, unknown>>>(`${service.url}/api/trust`);
    assert.deepEqual(
      [trust.ok, trust.status, trust.x402?.enabled, trust.storage, trust.execution?.stats],
      [true, 'ok', false, { driver: 'sqlite+pglite', durable: true, jobs: 1, receipts: 1 }, stats],
    );
    assert.equal(trust.proofExamples?.recentVerifiedProofs, 1);
  });

  test('the page and the badge for people, the description for machines, the health for operators', async () => {
    const page = await get<string>(answer.body.links.proof ?? '');
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    const rows = [
      ...page.body.matchAll(
        /<tr data-check="\w+" data-state="\w+"><td><span class="pill (\w+)">.*\n.*<code[^>]*>(\w+)<\/code>/g,
      ),
    ];
    assert.deepEqual(
      // The receipt is seconds old: its log entry may be pending.
      rows.map(
        ([, state, name]) => `${name} ${name === 'receipt_logged' && state === 'pending' ? 'ok' : state}`,
      ),
      SERVED_CHECKS.map((name) => `${name} ok`),
    );
    assert.doesNotMatch(page.body, /src="(?!\/verify\.js\?)|https:\/\/target\.test/);
    const badge = await get<string>(`${answer.body.links.proof}/badge.svg`);
    assert.deepEqual([badge.status, badge.headers.get('content-type')], [200, 'image/svg+xml']);
    assert.match(badge.body, /aria-label="relay proof: verified"/);
    const openapi = await get<Record<string, unknown>>(`${service.url}/openapi.json`);
    assert.deepEqual([openapi.status, openapi.body.openapi], [200, '3.1.0']);
    const health = await get(`${service.url}/health`);
    assert.deepEqual(
      [health.status, health.body],
      [
        200,
        {
          ok: true,
          service: 'webhook-relay',
          version: '0.1.0',
          mode: 'demo',
          egressExemption: true,
          checks: {
            eventLog: { ok: true },
            signingKey: { ok: true },
            transparencyLog: { ok: true },
            readModels: { ok: true },
            projections: { ok: true },
            facilitator: null,
            chain: null,
            schedules: null,
          },
        },
      ],
    );
    const live = await get(`${service.url}/health/live`);
    assert.deepEqual(
      [live.status, live.body],
      [200, { ok: true, service: 'webhook-relay', version: '0.1.0' }],
    );
  });

  test('with the service stopped the receipt verifies from two saved texts, with relay verify and with jose', async () => {
    const { code, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
    await assert.rejects(get(`${service.url}/health/live`));
    const { jws } = answer.body.receipt;
    await assertVerifiesOffline(jws, jwks);
    const [head, , tail] = jws.split('.');
    const lie = Buffer.from(JSON.stringify({ ...payloadOf(jws), iat: 1 })).toString('base64url');
    await assert.rejects(assertVerifiesOffline(`${head}.${lie}.${tail}`, jwks));
  });
});

/** Between two reports a checkpoint may have covered the receipt: logged instead of pending. */
const untimed = ({ checks, ...rest }: Report) => ({
  ...rest,
  checks: checks.map((check) => (check.name === 'receipt_logged' ? { ...check, details: null } : check)),
});
