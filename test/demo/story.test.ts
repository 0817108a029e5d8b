// The demo against faulty relays: each fault is detected by the fact that covers it.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { freeCaller, runStory, type Story, StoryFailed } from '#src/demo/story.ts';
import type { Received } from '#src/demo/target.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { receiptLeafData } from '#src/domain/transparency/tree.ts';
import { parseWitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { primitives, sha256, testKey } from '#test/support/given/primitives.ts';
import { smallLog } from '#test/support/log/small-log.ts';
import { jsonOf, loopbackServer, sendJson } from '#test/support/process/loopback-server.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('story-test');

const key = testKey();
const payload = await payloadOf();
const jws = await signed(payload, key);
const log = smallLog();
for (const data of [sha256('another'), receiptLeafData(jws)]) await log.append(data);
const proof = await log.proof(1);
const proofOfAnother = await log.proof(0);
/** Correctly signed, issued one second later. */
const other = await signed({ ...payload, iat: payload.iat + 1 }, key);

type Call = { readonly headers: Record<string, string>; readonly body: unknown };
type Execution = ReturnType<typeof execution>;

/** The faults of a relay; absent parts are correct. */
type Faults = {
  readonly status?: number;
  /** The requests at the target for the first call and for the repeat. */
  readonly send?: (honest: Received, call: 1 | 2) => readonly Received[];
  readonly answer?: (honest: Execution, call: 1 | 2) => object;
  readonly storedJws?: string;
  readonly proof?: string;
  readonly paths?: Readonly<Record<string, number>>;
};

function execution(origin: string, replay: boolean) {
  const { jobId, receiptId } = payload;
  return {
    mode: 'demo',
    idempotentReplay: replay,
    job: { id: jobId, status: 'succeeded', attempts: 1, responseStatus: 200 },
    receipt: { id: receiptId, keyId: key.keyId, jws, replay },
    links: { job: `${origin}/job`, receipt: `${origin}/receipt`, proof: `${origin}/proof` },
  };
}

async function delivery({ headers, body }: Call): Promise<Received> {
  const bytes = Buffer.from(JSON.stringify(body));
  const signature = await key.sign(Buffer.concat([Buffer.from(`${payload.jobId}.1767323045.`), bytes]));
  const webhookHeaders = {
    'webhook-id': payload.jobId,
    'webhook-timestamp': '1767323045',
    'webhook-signature': `v1a,${Buffer.from(signature).toString('base64')}`,
  };
  return { method: 'POST', path: '/hook', headers: { ...headers, ...webhookHeaders }, body: bytes };
}

async function storyWith(faults: Faults): Promise<Story> {
  const received: Received[] = [];
  let calls = 0;
  await using server = await loopbackServer(async (request, response) => {
    const answer = (status: number, body: unknown) => sendJson(response, body, status);
    const url = request.url ?? '';
    if (url in (faults.paths ?? {})) return answer(faults.paths?.[url] ?? 0, {});
    if (url === '/.well-known/jwks.json')
      return answer(200, { keys: [key, log.key].map(({ record }) => toJwk(record)) });
    if (url === `/log/proof/${payload.receiptId}`) return response.writeHead(200).end(faults.proof ?? proof);
    if (url === '/receipt') return answer(200, { id: payload.receiptId, jws: faults.storedJws ?? jws });
    if (request.method === 'GET') return answer(200, {});
    calls += 1;
    const call = calls === 1 ? 1 : 2;
    const honest = await delivery(await jsonOf(request));
    const send = faults.send ?? ((one) => (call === 1 ? [one] : []));
    received.push(...send(honest, call));
    const correct = execution(server.url, call === 2);
    return answer(faults.status ?? 200, faults.answer?.(correct, call) ?? correct);
  });
  const target = { url: 'https://127.0.0.1:9/hook', received };
  const baseUrl = server.url;
  const { policy } = parseWitnessPolicy('quorum none');
  assert.ok(policy !== null);
  const witnesses = { file: join(folder, 'witnesses.policy'), policy };
  return await runStory({ baseUrl, target, folder, primitives, caller: freeCaller(baseUrl), witnesses });
}

const first =
  (change: (honest: Received) => Received): NonNullable<Faults['send']> =>
  (honest, call) =>
    call === 1 ? [change(honest)] : [];
const withHeader = (name: string, value: string) =>
  first((honest) => ({ ...honest, headers: { ...honest.headers, [name]: value } }));

describe('the demo with a relay', () => {
  test('without faults: every fact holds', async () => {
    const story = await storyWith({});
    assert.deepEqual(
      story.facts.filter(({ ok }) => !ok),
      [],
    );
    assert.equal(story.ok, true);
  });

  const cases: readonly (readonly [string, Faults, readonly string[]])[] = [
    [
      'whose job failed',
      {
        status: 502,
        answer: (honest) => ({ ...honest, job: { ...honest.job, status: 'failed', responseStatus: 500 } }),
      },
      ['job_succeeded'],
    ],
    ['that sends twice at once', { send: (one, call) => (call === 1 ? [one, one] : []) }, ['called_once']],
    ['that sends again at the repeat', { send: (one) => [one] }, ['replay_not_sent']],
    [
      'that counts two attempts',
      { answer: (honest) => ({ ...honest, job: { ...honest.job, attempts: 2 } }) },
      ['called_once'],
    ],
    [
      'that changes the method',
      { send: first((honest) => ({ ...honest, method: 'PUT' })) },
      ['request_as_sent'],
    ],
    [
      'that changes the body',
      { send: first((honest) => ({ ...honest, body: Buffer.from('{}') })) },
      ['request_as_sent', 'webhook_signature_valid'],
    ],
    ['that drops a header', { send: withHeader('x-order-source', '') }, ['request_as_sent']],
    [
      'that names another job',
      { send: withHeader('webhook-id', 'job_other') },
      ['webhook_id_is_job', 'webhook_signature_valid'],
    ],
    [
      'that shifts the time',
      { send: withHeader('webhook-timestamp', '1767323046') },
      ['webhook_signature_valid'],
    ],
    [
      'that names another signature scheme',
      {
        send: first((honest) => {
          const signature = honest.headers['webhook-signature']?.replace('v1a,', 'v1,') ?? '';
          return { ...honest, headers: { ...honest.headers, 'webhook-signature': signature } };
        }),
      },
      ['webhook_signature_valid'],
    ],
    ['that does not sign', { send: withHeader('webhook-signature', '') }, ['webhook_signature_valid']],
    [
      'that stores another receipt',
      { storedJws: `${other.slice(0, -20)}${jws.slice(-20)}` },
      ['receipt_verified_offline', 'receipt_logged', 'receipt_witnessed'],
    ],
    [
      'that proves another leaf',
      { proof: proofOfAnother },
      ['receipt_verified_offline', 'receipt_logged', 'receipt_witnessed'],
    ],
    [
      'that reports the repeat as a first call',
      { answer: (honest) => ({ ...honest, idempotentReplay: false }) },
      ['replayed'],
    ],
    [
      'that reports the first call as a replay',
      { answer: (honest) => ({ ...honest, idempotentReplay: true }) },
      ['replayed'],
    ],
    [
      'that signs the repeat again',
      {
        answer: (honest, call) =>
          call === 1 ? honest : { ...honest, receipt: { ...honest.receipt, jws: other } },
      },
      ['replay_same_receipt'],
    ],
    ['with a dead link', { paths: { '/proof': 404 } }, ['links_work']],
  ];
  for (const [title, faults, broken] of cases) {
    test(`${title}: ${broken.join(', ')} fails`, async () => {
      const story = await storyWith(faults);
      assert.deepEqual(
        story.facts.filter(({ ok }) => !ok).map(({ name }) => name),
        broken,
      );
      assert.equal(story.ok, false);
    });
  }

  test('that refuses, calls no target, or does not serve its receipt or keys: the demo ends', async () => {
    const ends: readonly (readonly [Faults, RegExp])[] = [
      [{ status: 429 }, /answered 429/],
      [{ send: () => [] }, /the target received nothing/],
      [{ paths: { '/receipt': 503 } }, /receipt answered 503/],
      [{ paths: { '/.well-known/jwks.json': 404 } }, /jwks\.json answered 404/],
    ];
    for (const [faults, message] of ends) {
      await assert.rejects(
        storyWith(faults),
        (error) => error instanceof StoryFailed && message.test(error.message),
      );
    }
  });
});
