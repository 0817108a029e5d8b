// A contract wallet (ERC-1271) pays: its signature has any length, and only the chain can verify it. The result belongs to
// the wallet, also if others name it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertAskedToPay,
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  type Sent,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, SAMPLES, type Sample } from '#test/support/paid-world.ts';
import { altered, challenge, makePayment, newPayer, type Payer, type Payment } from '#test/support/payer.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { LONG } from '#test/support/property-runs.ts';
import type { Service } from '#test/support/service.ts';

const needs = needsAnvil();
const postgres = needsPostgres();
/** Follows the owner's 65 bytes; the contract ignores it. */
const ENDINGS = ['', '00', 'ab'.repeat(32), '1b'.repeat(300)] as const;
/** LIMITS.contractWalletPerMinute */
const FAILURES = 5;
const OWNER = '198.51.100.7';
const STRANGER = '198.51.100.8';

/** Of a wallet: no private key belongs to its address. */
type WalletSample = Sample & { readonly owner: Payer };

/** Signs in the name of an address with another's key. */
const signingAs = (address: Payer['address'], key: Payer, ending: string = ENDINGS[0]): Payer => ({
  ...key,
  address,
  signTypedData: async (typed) => `${await key.signTypedData(typed)}${ending}`,
});

/** Presented by a client of this address, as a trusted proxy reports it. */
const from = (client: string, given: Payment): Payment => ({
  ...given,
  headers: {
    1: { ...given.headers[1], 'x-forwarded-for': client },
    2: { ...given.headers[2], 'x-forwarded-for': client },
  },
});

const bytesOf = ({ payload }: Payment) => (String(payload.payload.signature).length - 2) / 2;

describe('contract wallets', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start({ TRUSTED_PROXIES: '127.0.0.0/8' });
  });
  after(() => paid?.end());

  const calls = (kind: 'verify' | 'settle', given: Payment) => callsOf(paid, kind, given);
  const wallets = (row: string, count: number) => walletsOf(paid, service, row, count);
  const payment = (sample: WalletSample) => paymentOf(service, sample);

  /** Valid for the contract, and not the signature of the payment. */
  const signedOtherwise = (given: Payment) =>
    altered(given, (_, signed) => Object.assign(signed, { signature: `${signed.signature}02` }));

  for (const version of [2, 1] as const) {
    test(
      `it pays by version ${version}: served and charged once; a copy replays, in either version`,
      needs,
      async () => {
        const samples = await wallets(`pays-${version}`, 12);
        assert.deepEqual(
          samples.slice(0, 4).map((sample) => bytesOf(sample.payment)),
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
      },
    );
  }

  test(
    'the same authorization under another signature: 409 payment_reused, and nothing of the result',
    needs,
    async () => {
      const samples = await wallets('otherwise', 12);
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
    },
  );

  test(
    'a stranger names the wallet, its key and its request: 402, and nothing of the result',
    needs,
    async () => {
      const samples = await wallets('named', 12);
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
        // An address without a contract cannot have signed with another key: the facilitator is not called.
        const byKey = await makePayment(signingAs(newPayer().address, newPayer()), asked);
        assertDisclosesNothing(await send(service, sample, { payment: byKey }), first);
        assertAskedToPay(await send(service, sample, { payment: byKey }));
        assert.equal(calls('verify', byKey), 0);
        // The wallet, with another payment, gets the reason.
        const own = { payment: await payment(sample) };
        assert.equal(
          assertDelivered(await send(service, sample, own), sample, { replay: true }).job.id,
          first.job.id,
        );
        assert.equal(calls('settle', own.payment), 0);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test('20 copies at once: one call and one settlement; the rest replay, 409 or 429', needs, async () => {
    const samples = await wallets('copies', 6);
    for (const sample of samples) {
      const copies = Array.from({ length: 20 }, (_, n) =>
        send(service, sample, { version: n % 2 === 0 ? 2 : 1 }),
      );
      const sent = await Promise.all(copies);
      assert.equal(sent.filter(({ status, body }) => status === 200 && !body.idempotentReplay).length, 1);
      for (const [n, answer] of sent.entries()) {
        const version = n % 2 === 0 ? 2 : 1;
        if (answer.status === 200) {
          assertDelivered(answer, sample, { version, replay: answer.body.idempotentReplay });
        } else if (answer.status === 409) assertSaid(answer, 409, 'idempotency_in_progress');
        else assertSaid(answer, 429, 'too_many_in_flight', 'rate_limited');
      }
      assert.equal(calls('settle', sample.payment), 1);
    }
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test(
    'a wallet that pays more than five times a minute is served: calls that succeed are no failed attempts',
    needs,
    async () => {
      const samples = await wallets('often', 3);
      await each(samples, async (sample) => {
        const request = { ...sample.request, idempotencyKey: undefined };
        for (let n = 0; n <= FAILURES; n++) {
          const own = await payment(sample);
          assertDelivered(await sendPatiently(service, sample, { request, payment: own }), sample);
        }
      });
      await paid.assertBooks(samples, { calls: FAILURES + 1, charges: FAILURES + 1 });
    },
  );

  test('forged payments of one client lock only that client out', needs, () =>
    assertForgeryLocksNoOwnerOut(paid, [service, service]),
  );
  test('a wallet that signs on every repeat gets the call of its first payment', needs, () =>
    assertSignsAgain(paid, [service, service]),
  );

  function assertDisclosesNothing(sent: Sent, { job, receipt }: Pick<Sent['body'], 'job' | 'receipt'>): void {
    const text = JSON.stringify([[...sent.headers], sent.body]);
    for (const secret of [job.id, receipt.id, receipt.jws]) assert.ok(!text.includes(secret), text);
  }
});

if (LONG)
  describe('contract wallets, on two processes', () => {
    const both = { skip: needs.skip || postgres.skip };
    let server: PostgresServer;
    let paid: PaidWorld;
    let pair: readonly [Service, Service];
    before(async () => {
      if (both.skip) return;
      server = await postgresServer();
      paid = await makePaidWorld();
      const env = { DATABASE_URL: await server.newDatabase(), TRUSTED_PROXIES: '127.0.0.0/8' };
      // One after the other: the first makes the key file.
      const left = await paid.start(env);
      pair = [left, await paid.start(env)];
    });
    after(async () => {
      await paid?.end();
      await server?.remove();
    });

    test('forged payments of one client lock only that client out, at both', both, () =>
      assertForgeryLocksNoOwnerOut(paid, pair),
    );
    test('a wallet that signs on every repeat gets the call of its first payment at the other', both, () =>
      assertSignsAgain(paid, pair),
    );
  });

const callsOf = ({ proxy }: PaidWorld, kind: 'verify' | 'settle', { nonce }: Payment) =>
  proxy.callsOf(kind, nonce).length;

async function walletsOf(
  paid: PaidWorld,
  service: Service,
  row: string,
  count: number,
): Promise<readonly WalletSample[]> {
  const more = () => ({ idempotencyKey: row });
  return each(await paid.samples(service, row, { count, more }), async (sample) => {
    const owner = newPayer();
    await paid.chain.placeWallet(sample.payer.address, owner.address);
    const wallet = { ...sample, owner };
    return { ...wallet, payment: await paymentOf(service, wallet, ENDINGS[sample.n % ENDINGS.length]) };
  });
}

async function paymentOf(
  service: Service,
  { payer, owner }: WalletSample,
  ending?: string,
): Promise<Payment> {
  return makePayment(signingAs(payer.address, owner, ending), await challenge(`${service.url}${EXECUTE}`));
}

/** The sixth forged payment of a client in a minute is 429; the wallet pays from another address, and is served. */
async function assertForgeryLocksNoOwnerOut(
  paid: PaidWorld,
  [here, there]: readonly [Service, Service],
): Promise<void> {
  const samples = await walletsOf(paid, here, 'forged', SAMPLES);
  await paid.leaveUnknown(samples, 'cut', (sample) =>
    sendPatiently(here, sample, { payment: from(OWNER, sample.payment) }),
  );
  await each(samples, async (sample) => {
    const asked = await challenge(`${here.url}${EXECUTE}`);
    const request = { ...sample.request, idempotencyKey: undefined };
    const forged = async () =>
      from(STRANGER, await makePayment(signingAs(sample.payer.address, newPayer()), asked));
    for (let n = 1; n <= FAILURES; n++) {
      const at = n % 2 === 0 ? here : there;
      assertAskedToPay(await sendPatiently(at, sample, { request, payment: await forged() }));
    }
    const sixth = await send(there, sample, { request, payment: await forged() });
    assertSaid(sixth, 429, 'rate_limited');
    assert.match(sixth.headers.get('retry-after') ?? '', /^[1-9]\d?$/);
    const own = from(OWNER, await paymentOf(here, sample));
    assertDelivered(await sendPatiently(there, sample, { request, payment: own }), sample);
    // Charged, and its answer lost: served to anyone with the same payment, from any address.
    for (const [address, replay] of [
      [STRANGER, false],
      [OWNER, true],
    ] as const) {
      const copy = from(address, sample.payment);
      assertDelivered(await sendPatiently(there, sample, { payment: copy }), sample, { replay });
    }
    assert.equal(callsOf(paid, 'settle', sample.payment), 1);
  });
  paid.proxy.rule(() => 'pass');
  await paid.assertBooks(samples, { calls: 2, charges: 2 });
}

/** The payer of a repeat is proven by the facilitator; its new authorization is not settled. */
async function assertSignsAgain(paid: PaidWorld, [here, there]: readonly [Service, Service]): Promise<void> {
  const samples = await walletsOf(paid, here, 'again', SAMPLES);
  await paid.leaveUnknown(samples, 'cut', (sample) => sendPatiently(here, sample));
  await each(samples, async (sample) => {
    const repeat = await paymentOf(there, sample);
    const first = assertDelivered(await sendPatiently(there, sample, { payment: repeat }), sample);
    const late = await paymentOf(here, sample);
    const again = await sendPatiently(here, sample, { payment: late });
    assert.deepEqual(assertDelivered(again, sample, { replay: true }).job, first.job);
    for (const payment of [repeat, late])
      assert.deepEqual([callsOf(paid, 'verify', payment), callsOf(paid, 'settle', payment)], [1, 0]);
  });
  paid.proxy.rule(() => 'pass');
  await paid.assertBooks(samples, { calls: 1, charges: 1 });
}
