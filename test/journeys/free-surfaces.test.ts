// The free surfaces of the real service: a package for a browser, a schedule preview, and the canary, which the relay
// may call, behind a TLS front as in a deployment. Callers' input to them is stored nowhere.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { canaryFor, filesBelow, wordsIn } from '#test/support/canaries.ts';
import type { Service } from '#test/support/service.ts';
import { openAll, payloadOf } from '#test/support/service-receipts.ts';
import { execute, get, makeWorld, post, type Report, type World } from '#test/support/service-world.ts';
import type { RecordedRequest } from '#test/support/tls-target.ts';

const WORDS = ['path', 'text', 'selector', 'key', 'header', 'body', 'canarybody'].map(canaryFor);
const [PATH, TEXT, SELECTOR, KEY, HEADER, BODY, CANARY_BODY] = WORDS;

let world: World;
let service: Service;
let base: string;
/** What the service answered behind its front, in order. */
const passed: string[] = [];

/** The front: terminates TLS and forwards. */
async function passOn({ method, path, headers, body }: RecordedRequest) {
  const { host: _, 'content-length': __, connection: ___, ...rest } = headers;
  const answer = await fetch(`${service.url}${path}`, {
    method,
    headers: rest,
    ...(method === 'GET' ? {} : { body: new Uint8Array(body) }),
  });
  const text = await answer.text();
  passed.push(text);
  return { status: answer.status, body: text };
}

type Offer = {
  readonly allowed: boolean;
  readonly next: Record<string, string>;
  readonly preview?: { readonly nextRuns: readonly string[] };
};

describe('the free surfaces', () => {
  before(async () => {
    world = await makeWorld({ embedded: true, handler: passOn });
    base = new URL(world.target.url('/', 'relay.target.test')).origin;
    service = await world.start({ PUBLIC_BASE_URL: base, ALLOW_FREE_RELAY: 'true', LOG_LEVEL: 'debug' });
  });
  after(() => world.end());

  test('a package for a browser and the next runs of a schedule: answered, and nothing is sent', async () => {
    const action = { type: 'type', text: TEXT, selector: SELECTOR };
    const target = { targetUrl: `https://shop.target.test/${PATH}`, idempotencyKey: KEY };
    const handed = await post<Offer>(`${service.url}/api/handoff/browser`, { ...target, actions: [action] });
    assert.deepEqual([handed.status, handed.body.allowed], [200, true]);
    for (const link of Object.values(handed.body.next)) assert.ok(link.startsWith(`${base}/api/`), link);
    const webhook = { url: `https://hook.target.test/${PATH}`, headers: { 'x-own': HEADER }, body: BODY };
    const schedule = { type: 'daily', timeOfDay: '02:30', timezone: 'europe/berlin' };
    const asked = { webhook: { ...webhook, idempotencyKey: KEY }, schedule };
    const { status, body } = await post<Offer>(`${service.url}/api/schedules/preview`, asked);
    assert.deepEqual([status, body.allowed, body.preview?.nextRuns.length], [200, true, 3]);
    assert.equal(world.target.requests.length, 0);
  });

  test('the canary is the only own address that the relay calls, and its receipt proves the answer', async () => {
    const url = `${base}/api/canary/echo`;
    const { status, body } = await execute(service, { url, body: { text: CANARY_BODY } });
    assert.deepEqual([status, body.job.status, body.job.responseStatus], [200, 'succeeded', 200]);
    const [request] = world.target.requests;
    const [answer = ''] = passed;
    assert.deepEqual([world.target.requests.length, passed.length], [1, 1]);
    assert.ok(request);
    const echo = JSON.parse(answer) as Record<string, unknown>;
    assert.deepEqual(echo, {
      ok: true,
      service: 'webhook-relay',
      method: 'POST',
      receivedAt: echo.receivedAt,
      requestId: echo.requestId,
      bodyBytes: request.body.length,
      bodySha256: createHash('sha256').update(request.body).digest('hex'),
    });
    const opened = openAll(payloadOf(body.receipt.jws), body.disclosures);
    assert.equal(opened.get('response_body_sha256'), createHash('sha256').update(answer).digest('hex'));
    assert.equal(opened.get('request_body_sha256'), echo.bodySha256);
    const report = await get<Report>(`${service.url}/api/verify/jobs/${body.job.id}`);
    assert.equal(report.body.ok, true);
  });

  test('none of the input is in a file or a log line', async () => {
    const { code, stdout, stderr } = await service.stop();
    assert.equal(code, 0);
    const files = filesBelow(world.dataDir);
    assert.ok(files.length > 3 && stdout.length > 500, `${files.length} files, ${stdout.length} characters`);
    assert.deepEqual(wordsIn(WORDS, stdout + stderr), []);
    for (const [path, bytes] of files) assert.deepEqual(wordsIn(WORDS, bytes), [], path);
  });
});
