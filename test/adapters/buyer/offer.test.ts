// Judging a bill as the service's own adapter makes it: good, over, of another time or key. (What a relay may change in
// it is tried in test/cli/pay.test.ts.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bill, judgeBill, readBill } from '#src/adapters/buyer/offer.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { BASE_URL, lab, offerKey, PAY_TO } from '#test/adapters/payments/lab.ts';
import { manualClock } from '#test/support/fakes.ts';
import { testKey } from '#test/support/primitives.ts';

const NOW = Date.parse('2026-03-01T00:00:00.000Z');
const DID = 'did:web:relay.example';
const resourceUrl = `${BASE_URL}/api/execute/webhook`;
const LIMITS = { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, resourceUrl };

async function bill(): Promise<Bill> {
  const { protocol } = await lab({ clock: manualClock(NOW) });
  const asked = { route: 'execute/webhook', reason: 'payment_required', hints: [] } as const;
  const { headers } = await protocol.challenge(asked);
  const read = readBill((name) => headers[name.toUpperCase()] ?? null);
  assert.ok(read);
  return read;
}
async function offerFound(changes: Partial<KeyRecord> = {}, nowMs = NOW, did = DID) {
  const key = { ...offerKey.record, notBefore: NOW / 1000 - 60, ...changes };
  const { findings } = await judgeBill(await bill(), LIMITS, { did, keys: [key] }, nowMs);
  const others = findings.filter(({ name }) => name !== 'signed_offer');
  assert.ok(others.every(({ ok }) => ok));
  const found = findings.find(({ name }) => name === 'signed_offer');
  return [found?.ok, found?.offered];
}

test('a bill of our own is good', async () => {
  assert.deepEqual(await offerFound(), [true, `signed by ${DID}#${offerKey.keyId}`]);
});

test('an offer that is over is none', async () => {
  assert.equal((await offerFound({}, NOW + 299_000))[0], true);
  assert.deepEqual(await offerFound({}, NOW + 300_000), [false, 'it is over']);
});

test('only a key of the relay that is valid now counts, and only under the relay’s name', async () => {
  const retired = await offerFound({ notAfter: NOW / 1000 - 1 });
  const early = await offerFound({ notBefore: NOW / 1000 + 1 });
  const compromised = await offerFound({ compromisedAt: NOW / 1000 });
  const otherUse = await offerFound({ purpose: 'checkpoint' });
  for (const [ok, why] of [retired, early, compromised, otherUse]) {
    assert.deepEqual([ok, String(why).endsWith('is no key of the relay at that time')], [false, true]);
  }
  assert.deepEqual(await offerFound({ x: testKey().x }), [false, 'its signature is not good']);
  assert.equal((await offerFound({}, NOW, 'did:web:other.example'))[0], false);
});

test('what is no bill of version 2', () => {
  const header = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
  for (const value of [null, '', '%%%', header(null), header({}), header({ x402Version: 1, accepts: [] })]) {
    assert.equal(
      readBill(() => value),
      null,
      String(value),
    );
  }
});
