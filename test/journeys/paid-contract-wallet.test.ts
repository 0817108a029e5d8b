// A contract wallet (ERC-1271) pays: its signature has any length, and only the chain can verify it. The result belongs to
// the wallet, also if others name it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import {
  altered,
  challenge,
  makePayment,
  newPayer,
  type Payer,
  type Payment,
} from '#test/support/chain/payer.ts';
import type { Service } from '#test/support/process/service.ts';
import {
  assertAskedToPay,
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  type Sent,
  send,
  sendPatiently,
} from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

const needs = needsAnvil();
/** Follows the owner's 65 bytes; the contract ignores it. */
const ENDINGS = ['', '00', 'ab'.repeat(32), '1b'.repeat(300)] as const;

/** Of a wallet: no private key belongs to its address. */
type WalletSample = Sample & { readonly owner: Payer };

/** Signs in the name of an address with another's key. */
const signingAs = (address: Payer['address'], key: Payer, ending: string = ENDINGS[0]): Payer => ({
  ...key,
  address,
  signTypedData: async (typed) => `${await key.signTypedData(typed)}${ending}`,
});

const bytesOf = ({ payload }: Payment) => (String(payload.payload.signature).length - 2) / 2;

describe('contract wallets', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start({ TRUSTED_PROXIES: '127.0.0.0/8' });
  });
  after(() => paid.end());

  const calls = (kind: 'verify' | 'settle', given: Payment) => callsOf(paid, kind, given);
  const wallets = (row: string) => walletsOf(paid, service, row);
  const payment = (sample: WalletSample) => paymentOf(service, sample);

  /** Valid for the contract, and not the signature of the payment. */
  const signedOtherwise = (given: Payment) =>
    altered(given, (_, signed) => Object.assign(signed, { signature: `${signed.signature}02` }));

  for (const version of [2, 1] as const) {
    test(`it pays by version ${version}: served and charged once; a copy replays, in either version`, async () => {
      const samples = await wallets(`pays-${version}`);
      assert.deepEqual(
        samples.map((sample) => bytesOf(sample.payment)),
        [65, 66, 97, 365],
      );
      await each(samples, async (sample) => {
        const sent = await sendPatiently(service, sample, { version });
        const first = assertDelivered(sent, sample, { version });
        for (const again of [1, 2] as const) {
          const replay = await send(service, sample, { version: again });
          const { job, receipt } = assertDelivered(replay, sample, { version: again, replay: true });
          assert.deepEqual([job, receipt], [first.job, { ...first.receipt, replay: true }]);
        }
        assert.deepEqual([calls('verify', sample.payment), calls('settle', sample.payment)], [1, 1]);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  test('the same authorization under another signature: 409 payment_reused, and nothing of the result', async () => {
    const samples = await wallets('otherwise');
    await each(samples, async (sample) => {
      const first = assertDelivered(await sendPatiently(service, sample), sample);
      const copy = signedOtherwise(sample.payment);
      for (const version of [2, 1] as const) {
        const sent = await send(service, sample, { payment: copy, version });
        assertSaid(sent, 409, 'payment_reused');
        assertDisclosesNothing(sent, first);
      }
      assert.equal(
        assertDelivered(await send(service, sample), sample, { replay: true }).job.id,
        first.job.id,
      );
      assert.equal(calls('settle', sample.payment), 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('a stranger names the wallet, its key and its request: 402, and nothing of the result', async () => {
    const samples = await wallets('named');
    await each(samples, async (sample) => {
      const { address } = sample.payer;
      const first = assertDelivered(await sendPatiently(service, sample), sample);
      const asked = await challenge(`${service.url}${EXECUTE}`);
      for (const version of [2, 1] as const) {
        const forged = await makePayment(signingAs(address, newPayer()), asked);
        const sent = await sendPatiently(service, sample, { payment: forged, version });
        assertAskedToPay(sent);
        assertDisclosesNothing(sent, first);
        assert.deepEqual([calls('verify', forged), calls('settle', forged)], [1, 0]);
      }
      // The wallet, with another payment, gets the reason.
      const own = { payment: await payment(sample) };
      assert.equal(
        assertDelivered(await send(service, sample, own), sample, { replay: true }).job.id,
        first.job.id,
      );
      assert.equal(calls('settle', own.payment), 0);
    });
    // An address without a contract cannot have signed with another key: the facilitator is not called. (One at a time: for
    // one client, the node is asked about few addresses at once.)
    const asked = await challenge(`${service.url}${EXECUTE}`);
    for (const sample of samples) {
      const byKey = await makePayment(signingAs(newPayer().address, newPayer()), asked);
      for (const _ of [1, 2]) assertAskedToPay(await send(service, sample, { payment: byKey }));
      assert.equal(calls('verify', byKey), 0);
    }
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  function assertDisclosesNothing(sent: Sent, { job, receipt }: Pick<Sent['body'], 'job' | 'receipt'>): void {
    const text = JSON.stringify([[...sent.headers], sent.body]);
    for (const secret of [job.id, receipt.id, receipt.jws]) assert.ok(!text.includes(secret), text);
  }
});

const callsOf = ({ proxy }: PaidWorld, kind: 'verify' | 'settle', { nonce }: Payment) =>
  proxy.callsOf(kind, nonce).length;

async function walletsOf(paid: PaidWorld, service: Service, row: string): Promise<readonly WalletSample[]> {
  const more = () => ({ idempotencyKey: row });
  return each(await paid.samples(service, row, { count: ENDINGS.length, more }), async (sample) => {
    const owner = newPayer();
    await paid.chain.placeWallet(sample.payer.address, owner.address);
    const wallet = { ...sample, owner };
    return { ...wallet, payment: await paymentOf(service, wallet, ENDINGS[sample.n]) };
  });
}

async function paymentOf(
  service: Service,
  { payer, owner }: WalletSample,
  ending?: string,
): Promise<Payment> {
  return makePayment(signingAs(payer.address, owner, ending), await challenge(`${service.url}${EXECUTE}`));
}
