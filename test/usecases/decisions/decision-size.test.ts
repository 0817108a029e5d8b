// A decision is a free write that is kept permanently: its event is small, whatever the body.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { BuyerPolicyRequest } from '#src/domain/decision/requests.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { DecideRequest } from '#src/http/routes/decisions.ts';
import type { Quota } from '#src/ports/quota.ts';
import { decided, plainAction } from '#test/support/given/given-decision.ts';
import { world } from '#test/support/world/fakes-world.ts';
import { appOf, fakeWorld, decided as givenDecision } from '#test/support/world/http-deps.ts';

const EVENT_BYTES_MAX = 4000;
const check = schemaCheck(DecideRequest);
const { maxItems = 0 } = BuyerPolicyRequest.properties.allowedNetworks;

/** The longest that the schema takes of those that are tried. */
function longestNetwork(): string {
  const texts = ['\u0001', '"', '€', 'a'].flatMap((letter) =>
    Array.from({ length: 64 }, (_, i) => [letter.repeat(i + 1), `eip155:${letter.repeat(i + 1)}`]).flat(),
  );
  const taken = texts.filter((text) =>
    check.matches({ action: plainAction(), buyerPolicy: { allowedNetworks: [text] } }),
  );
  const bytes = (text: string) => Buffer.byteLength(JSON.stringify(text));
  return taken.reduce((a, b) => (bytes(b) > bytes(a) ? b : a), '');
}

test('the event of a decision is at most 4,000 bytes for the largest body that is accepted', async () => {
  const buyerPolicy = {
    maxPriceUsd: '000000000.000001',
    minTrustScore: 99.99999999999999,
    requireReceipt: false,
    requireIdempotencyKey: true,
    requirePolicyPass: false,
    allowedNetworks: Array<string>(maxItems).fill(longestNetwork()),
  };
  const action = plainAction({
    method: 'DELETE',
    idempotencyKey: undefined,
    headers: Object.fromEntries(
      Array.from({ length: LIMITS.targetHeaders.max }, (_, i) => [`Proxy-${i}`, 'x']),
    ),
    body: 'x'.repeat(8000),
  });
  assert.ok(check.matches({ action, buyerPolicy }), 'the body is accepted');
  const bodyBytes = Buffer.byteLength(JSON.stringify({ action, buyerPolicy }));
  assert.ok(bodyBytes > LIMITS.decideBodyBytes.max / 2, `${bodyBytes}`);
  for (const measured of [true, false])
    for (const requirePolicyPass of [true, false]) {
      const it = world();
      it.resolver.answer({ outcome: 'not_found' });
      const market = async () => ({
        trustScore: 12.345678901234567,
        recentFailureRate: 0.9876543210987654,
        recentFinishedJobs: Number.MAX_SAFE_INTEGER,
      });
      const offer = {
        price: '$999999999.999999',
        network: 'eip155:99999999999999999999999999999999',
        payTo: '0x1111111111111111111111111111111111111111',
      };
      const deps = { market, offer };
      await decided(it, { action, buyerPolicy: { ...buyerPolicy, requirePolicyPass }, deps });
      const [stored, ...more] = it.log.events;
      assert.ok(stored !== undefined && more.length === 0);
      const bytes = Buffer.byteLength(
        JSON.stringify([stored.stream, stored.type, stored.data, stored.metadata]),
      );
      assert.ok(bytes <= EVENT_BYTES_MAX, `${bytes} bytes, measured ${measured}`);
    }
});

test('of one client address, whatever its /64 has, at most 200 decisions a day are written', async () => {
  const windows = memoryQuota();
  // Each minute is over at once.
  const quota: Quota = {
    ...windows,
    take: (rule, key) =>
      windows.take(rule.windowMs > 60_000 ? rule : { ...rule, name: `${rule.name} ${minutes++}` }, key),
  };
  let minutes = 0;
  let written = 0;
  const app = appOf(
    fakeWorld({
      quota,
      async decide() {
        written++;
        return givenDecision();
      },
    }),
  );
  const post = (clientAddress: string) =>
    app.fetch(
      new Request('http://localhost/api/decide/webhook', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ action: plainAction() }),
      }),
      { clientAddress },
    );
  const statuses: number[] = [];
  for (let i = 0; i <= 201; i++) statuses.push((await post(`2001:db8::${i.toString(16)}`)).status);
  assert.deepEqual([written, statuses.at(199), statuses.at(200)], [200, 200, 429]);
  assert.equal((await post('2001:db8:0:1::1')).status, 200, 'another address has its own');
});
