// A settlement without a conclusive answer is followed on the chain within its own call, as long as in production: served in
// the same call and charged once, or refused without a charge.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { assertDelivered, assertSaid, each, send } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

const needs = needsAnvil();

describe('a settlement is confirmed by the chain', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    paid = await makePaidWorld({ embedded: true, facilitatorWaitMs: 500 });
    service = await start();
  });
  after(() => paid.end());

  const start = () => paid.start({ X402_CONFIRM_SECONDS: '30' });
  const settles = ({ payment }: Sample) => paid.proxy.callsOf('settle', payment.nonce);
  const areSettled = (samples: readonly Sample[]) => () =>
    samples.every((sample) => settles(sample).some(({ ended }) => ended));

  /** Types of the payment's events, and the last one's data. */
  async function recorded({ payer }: Sample) {
    const events = await paid.log.recorded();
    const own = events.find(({ data }) => data.payer === payer.address.toLowerCase());
    const payment = events.filter(({ stream }) => stream === own?.stream);
    const found = (type: string) => payment.find((event) => event.type === type)?.data;
    return { types: payment.map(({ type }) => type), found };
  }

  test('settlement_pending with a hash, mined five seconds later: 200 in the same call, charged once', async () => {
    const samples = await paid.samples(service, 'pending');
    await paid.chain.automine(false);
    const begun = performance.now();
    const calls = Promise.all(samples.map((sample) => send(service, sample)));
    await waitFor('the facilitator has answered', areSettled(samples));
    await waitFor('it is recorded', async () =>
      (await Promise.all(samples.map(recorded))).every(({ types }) => types.includes('SettlementUnknown')),
    );
    await waitFor('five seconds', () => performance.now() - begun > 5000);
    await paid.chain.mine();
    for (const [n, sent] of (await calls).entries()) {
      const sample = samples[n] ?? assert.fail();
      assertDelivered(sent, sample);
      const { types, found } = await recorded(sample);
      assert.deepEqual(types, ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
      const [unknown, settled] = [found('SettlementUnknown'), found('PaymentSettled')];
      assert.deepEqual([unknown?.cause, settled?.evidence], ['settlement_pending', 'chain']);
      const hashes = [unknown?.transaction, settled?.transaction, sent.paid?.transaction];
      assert.deepEqual(new Set(hashes), new Set([unknown?.transaction]));
      assert.equal(settles(sample).length, 1);
    }
    await paid.chain.automine(true);
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  // Last: it stops the process.
  test('a stop ends the wait: the call is answered 503, and its header is served by the next process, charged once', async () => {
    const samples = await paid.samples(service, 'stopped');
    await paid.chain.automine(false);
    const calls = Promise.all(samples.map((sample) => send(service, sample)));
    await waitFor('the facilitator has answered', areSettled(samples));
    const looked = paid.node.calls.length;
    const stopped = service.stop();
    for (const sent of await calls) assertSaid(sent, 503, 'payment_unconfirmed');
    assert.equal((await stopped).code, 0);
    assert.ok(paid.node.calls.length - looked < 10 * samples.length, 'looked up no more than once or twice');
    for (const sample of samples) {
      const { types, found } = await recorded(sample);
      assert.deepEqual(types, ['PaymentReserved', 'SettlementUnknown']);
      assert.match(String(found('SettlementUnknown')?.transaction), /^0x[0-9a-f]{64}$/);
    }
    await paid.chain.automine(true);
    await paid.chain.mine();
    service = await start();
    await each(samples, async (sample) => {
      assertDelivered(await send(service, sample), sample);
      assert.equal(settles(sample).length, 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });
});
