// The main documents as served: shape, entity tag, and that they state nothing twice and nothing of another deployment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { publisher } from '#src/http/response/conditional-get.ts';
import { STATUS } from '#src/http/response/errors.ts';
import { lab } from '#test/adapters/payments/lab.ts';
import { clientOf, type OpenApi } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const DOCUMENTS = ['actions', 'quickstart', 'pricing', 'capabilities', 'secrets/policy'].map(
  (name) => `/api/${name}`,
);
const at = (instant: string) => ({
  clock: { ...fakeWorld().clock, now: () => Date.parse(instant) },
});

for (const path of DOCUMENTS) {
  test(`${path} fits its published schema and says when it was made`, async () => {
    const made = '2026-01-02T03:04:05.678Z';
    const { status, body, headers } = await clientOf(fakeWorld(at(made))).get(path);
    assert.equal(status, 200);
    const { ok, service, generatedAt } = body as Record<string, unknown>;
    assert.deepEqual({ ok, service, generatedAt }, { ok: true, service: 'webhook-relay', generatedAt: made });
    assert.equal(headers.get('cache-control'), 'public, max-age=300');
    assert.match(headers.get('link') ?? '', /rel="service-desc"/);
  });

  test(`${path} has one entity tag in every process, another price has another, and 304 has no content`, async () => {
    const early = clientOf(fakeWorld(at('2026-01-02T03:04:05.000Z')));
    const etag = (await early.get(path)).headers.get('etag') ?? '';
    assert.match(etag, /^W\/"[0-9a-f]{32}"$/);
    const late = clientOf(fakeWorld(at('2027-08-09T10:11:12.345Z')));
    const known = await late.call(path, { headers: { 'if-none-match': `"other", ${etag}` } });
    assert.equal(known.status, 304);
    assert.equal(known.headers.get('etag'), etag);
    const other = await late.call(path, { headers: { 'if-none-match': 'W/"other"' } });
    assert.equal(other.status, 200);
    if (path === '/api/secrets/policy') return;
    const offer = { scheme: 'exact', network: 'eip155:8453', price: '$0.7' };
    const dear = await clientOf(fakeWorld({ settings: { offer } })).get(path);
    assert.notEqual(dear.headers.get('etag'), etag);
  });
}

test('the price is stated as in the 402, and as required only where payment is enforced', async () => {
  const { protocol } = await lab();
  const paying = clientOf(fakeWorld({ payments: protocol, settings: { mode: 'x402' } }));
  const { body } = await paying.get('/api/pricing');
  const { paidRoutes, payment } = body as {
    paidRoutes: { path: string; resource: string; accepts: unknown }[];
    payment: { required: boolean };
  };
  assert.equal(payment.required, true);
  assert.equal(paidRoutes.length, 2);
  for (const { path, resource, accepts } of paidRoutes) {
    const challenge = await paying.post(path, '');
    const asked = decodePaymentRequiredHeader(challenge.headers.get('payment-required') ?? '');
    assert.deepEqual({ resource, accepts }, { resource: asked.resource?.url, accepts: asked.accepts });
  }
  const free = (await clientOf(fakeWorld()).get('/api/pricing')).body as typeof body & {
    paidRoutes: { accepts: unknown }[];
    payment: { required: boolean };
    summary: string;
  };
  assert.equal(free.payment.required, false);
  assert.deepEqual(
    free.paidRoutes.map(({ accepts }) => accepts),
    [null, null],
  );
  assert.match(free.summary, /no one is charged now/);
});

test('whether payment is required now is the same in each document that states it', async () => {
  for (const mode of ['demo', 'x402'] as const) {
    const client = clientOf(fakeWorld({ settings: { mode } }));
    const of = async (name: string) =>
      (await client.get(`/api/${name}`)).body as {
        payment: { required: boolean };
        activePrimitive: { paid: boolean; paymentRequired: boolean };
      };
    const { activePrimitive } = await of('actions');
    assert.equal(activePrimitive.paid, true);
    const required = [activePrimitive.paymentRequired];
    for (const name of ['quickstart', 'pricing', 'capabilities'])
      required.push((await of(name)).payment.required);
    assert.deepEqual(required, Array(4).fill(mode === 'x402'));
  }
});

type Charge = { statuses: number[]; codes: (keyof typeof STATUS)[]; charged: string };

test('pricing says of every status of the paid routes whether it is charged, as the contract has it', async () => {
  const client = clientOf(fakeWorld());
  const { charges } = (await client.get('/api/pricing')).body as { charges: Charge[] };
  const { paths } = await client.document();
  for (const path of ['/api/execute/webhook', '/api/execute/guided-webhook']) {
    for (const status of statusesOf(paths, path)) {
      assert.ok(
        charges.some(({ statuses }) => statuses.includes(status)),
        `${path} ${status}`,
      );
    }
  }
  const charged = charges.flatMap(({ statuses, codes, charged: how }) =>
    statuses.flatMap((status) =>
      (codes.length === 0 ? [''] : codes).map((code) => `${status} ${code} ${how}`.replace('  ', ' ')),
    ),
  );
  assert.deepEqual(charged.sort(), [
    '200 once',
    '400 never',
    '402 never',
    '404 never',
    '408 never',
    '409 never',
    '413 never',
    '415 never',
    '429 never',
    '500 internal_error at_most_once',
    '502 once',
    '503 event_log_unavailable at_most_once',
    '503 facilitator_unavailable never',
    '503 no_signing_key at_most_once',
    '503 payment_unconfirmed at_most_once',
    '508 never',
  ]);
  for (const { statuses, codes } of charges) {
    for (const code of codes) assert.deepEqual([STATUS[code]], statuses);
  }
});

function statusesOf(paths: OpenApi['paths'], path: string): readonly number[] {
  const statuses = Object.keys(paths[path]?.post?.responses ?? {}).map(Number);
  assert.ok(statuses.length > 8, path);
  return statuses;
}

test('a document that could not be made is made when it is asked for again', async () => {
  let asked = 0;
  const serve = publisher({ baseUrl: 'https://relay.example', generatedAt: 'now' })('text/plain', () => {
    asked += 1;
    if (asked === 1) throw new Error('not yet');
    return 'made';
  });
  const request = new Request('https://relay.example/x');
  await assert.rejects(async () => serve({ request }), /not yet/);
  assert.equal(await (await serve({ request })).text(), 'made');
  assert.equal(await (await serve({ request })).text(), 'made');
  assert.equal(asked, 2);
});
