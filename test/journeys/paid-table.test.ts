// The rest of the table of payments, on real processes: these rows have their faster test with the use cases, and run here
// in each cell of the matrix.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Fault } from '#test/support/fault-proxy.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertAskedToPay,
  assertDelivered,
  assertOneCall,
  assertSaid,
  EXECUTE,
  each,
  GUIDED,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { paidSuite } from '#test/support/paid-suite.ts';
import { type Body, SAMPLES, type Sample } from '#test/support/paid-world.ts';
import { altered, challenge, makePayment, newPayer, type Payment, resigned } from '#test/support/payer.ts';
import { waitFor } from '#test/support/service.ts';
import { payloadOf } from '#test/support/service-receipts.ts';
import { post } from '#test/support/service-world.ts';

const needs = needsAnvil();
/** Long enough for all calls to be accepted, on a slow machine too. */
const DECISION_LIVES_MS = 60_000;

describe('the table of payments', needs, () => {
  const it = paidSuite();

  const settles = ({ nonce }: Pick<Payment, 'nonce'>) => it.paid.proxy.callsOf('settle', nonce);
  const oneMore = async ({ payer }: Sample, route: typeof EXECUTE | typeof GUIDED = EXECUTE) =>
    makePayment(payer, await challenge(`${it.service.url}${route}`));

  /** Accepted, its settlement unknown, nothing charged yet. */
  async function leaveUnsettled(sample: Sample, by = it.service): Promise<void> {
    it.paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? 'json_500' : 'pass'));
    const route = 'decisionId' in sample.request ? GUIDED : EXECUTE;
    assertSaid(await sendPatiently(by, sample, { route }), 503, 'payment_unconfirmed');
  }

  // ── one payment, one call ───────────────────────────────────────────────────────────────────────────────

  test('another body, and another idempotencyKey, with the same payment: 409, and the first result is unchanged', async () => {
    const more = (n: number) => ({ idempotencyKey: `first ${n}` });
    const samples = await it.paid.samples(it.service, 'reused', { more });
    await each(samples, async (sample) => {
      const first = assertDelivered(await sendPatiently(it.service, sample), sample);
      for (const change of [{ body: 'another' }, { idempotencyKey: 'another' }, { method: 'PUT' }])
        for (const version of [1, 2] as const) {
          const request = { ...sample.request, ...change };
          assertSaid(await send(it.service, sample, { request, version }), 409, 'payment_reused');
        }
      const again = assertDelivered(await send(it.service, sample), sample, { replay: true });
      assert.deepEqual(again.job, first.job);
      assert.equal(settles(sample.payment).length, 1);
    });
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('one payment with K1, then K2, then a new payment with K2: K2 buys a call of its own', async () => {
    const samples = await it.paid.samples(it.service, 'two-keys', { more: () => ({ idempotencyKey: 'K1' }) });
    await each(samples, async (sample) => {
      const request = { ...sample.request, idempotencyKey: 'K2' };
      const first = assertDelivered(await sendPatiently(it.service, sample), sample);
      assertSaid(await send(it.service, sample, { request }), 409, 'payment_reused');
      const payment = await oneMore(sample);
      const last = assertDelivered(await sendPatiently(it.service, sample, { request, payment }), sample);
      assert.notEqual(last.job.id, first.job.id);
      const again = await send(it.service, sample, { request, payment });
      assert.equal(assertDelivered(again, sample, { replay: true }).job.id, last.job.id);
    });
    await it.paid.assertBooks(samples, { calls: 2, charges: 2 });
  });

  // ── refused ─────────────────────────────────────────────────────────────────────────────────────────────

  type Spoil = (payment: Payment) => Promise<Payment> | Payment;
  const signed =
    (terms: object): Spoil =>
    (payment) =>
      resigned(payment, (authorization) => Object.assign(authorization, terms));
  const unsigned =
    (terms: object): Spoil =>
    (payment) =>
      altered(payment, (_, { authorization }) => Object.assign(authorization, terms));
  const inSeconds = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
  const REFUSED: readonly (readonly [string, Spoil])[] = [
    [
      'on another network',
      (it) => withHeaders(it, ['eip155:8453', 'eip155:84532'], ['"base"', '"base-sepolia"']),
    ],
    ['to another payee, validly signed', signed({ to: newPayer().address })],
    ['the amount raised after the signature', unsigned({ value: '3001' })],
    ['expired', signed({ validBefore: inSeconds(-1) })],
    ['too far ahead', signed({ validBefore: inSeconds(3600) })],
    [
      'a signature of nothing',
      (it) => altered(it, (_, payload) => Object.assign(payload, { signature: `0x${'1'.repeat(128)}1b` })),
    ],
    ['a payer that did not sign', unsigned({ from: newPayer().address })],
    ['garbage', (it) => withHeaders(it, ['payload', 'poyload'])],
  ];
  for (const [title, spoil] of REFUSED) {
    test(`402, nothing called, nothing settled: ${title}`, async () => {
      const samples = await it.paid.samples(it.service, title.replace(/\W+/g, '-'));
      await each(samples, async (sample) => {
        const payment = await spoil(sample.payment);
        for (const version of [2, 1] as const)
          assertAskedToPay(await sendPatiently(it.service, sample, { payment, version }));
        assert.deepEqual([settles(payment).length, settles(sample.payment).length], [0, 0]);
      });
      await it.paid.assertBooks(samples, { calls: 0, charges: 0 });
    });
  }

  // ── unknown settlements ─────────────────────────────────────────────────────────────────────────────────

  for (const [title, fault, charges] of [
    ['not settled', 'json_500', 0],
    ['settled', 'cut', 1],
  ] as const satisfies readonly (readonly [string, Fault, number])[]) {
    const present = (sample: Sample) => sendPatiently(it.service, sample);

    test(`20 concurrent retries of an unknown payment (${title}): one call, charged once`, async () => {
      const samples = await it.paid.samples(it.service, `retries-${fault}`);
      await it.paid.leaveUnknown(samples, fault, present);
      await it.paid.assertBooks(samples, { calls: 0, charges });
      for (const sample of samples) {
        await assertOneCall([it.service], sample);
        assert.equal(settles(sample.payment).filter(({ moved }) => moved).length, 1);
      }
      await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  // ── accepted, then the circumstances changed ────────────────────────────────────────────────────────────

  test('the quota is spent: executed, charged once', async () => {
    const own = { DATA_DIR: join(it.paid.folder, 'quota') };
    const strict = await it.paid.start({
      ...own,
      POLICY_MODE: 'blocklist-quota',
      TARGET_QUOTA_PER_MINUTE: '1',
    });
    const more = (n: number) => ({ url: it.paid.target.url(`/quota/${n}`, `quota-${n}.target.test`) });
    const samples = await it.paid.samples(strict, 'quota', { more });
    await each(samples, (sample) => leaveUnsettled(sample, strict));
    /** If its minute ends meanwhile, another call is accepted, and left unknown. */
    const assertSpent = (sample: Sample) =>
      waitFor('the quota is spent', async () => {
        const sent = await sendPatiently(strict, sample, { payment: await oneMore(sample) });
        if (sent.status !== 503) assertSaid(sent, 429, 'target_quota_exceeded');
        return sent.status === 429;
      });
    await each(samples, async (sample) => {
      await assertSpent(sample);
      assertDelivered(await sendPatiently(strict, sample), sample);
      await assertSpent(sample);
    });
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('the decision has expired: executed, receipted, charged once', async () => {
    const action = { url: it.paid.target.url('/decided'), body: 1, idempotencyKey: 'decided' };
    const { id, expires } = await shortDecision(action);
    const more = () => ({ url: undefined, body: undefined, decisionId: id, action });
    // One decision approves one execution for each payer.
    const samples = await it.paid.samples(it.service, 'decided', { more, count: SAMPLES + 1 });
    const [stranger = assert.fail(), ...accepted] = samples;
    await each(accepted, (sample) => leaveUnsettled(sample));
    assert.ok(Date.now() < expires, 'all were accepted in time');
    await waitFor('the decision is over', () => Date.now() > expires, { limitMs: DECISION_LIVES_MS });
    assertSaid(await send(it.service, stranger, { route: GUIDED }), 409, 'decision_expired');
    await each(accepted, async (sample) => {
      const executed = assertDelivered(await sendPatiently(it.service, sample, { route: GUIDED }), sample);
      assert.deepEqual([executed.job.decisionId, payloadOf(executed.receipt.jws).decisionId], [id, id]);
      const again = await send(it.service, sample, { route: GUIDED });
      assert.deepEqual(assertDelivered(again, sample, { replay: true }).job, executed.job);
    });
    // All their requests went to the action's path.
    await it.paid.assertBooks(accepted, { calls: 0, charges: 1 });
    await it.paid.assertBooks([stranger], { calls: 0, charges: 0 });
    assert.equal(it.paid.hits({ path: '/decided' }), SAMPLES);
  });

  /** A real decision with another id, which expires soon. */
  async function shortDecision(action: Body): Promise<{ readonly id: string; readonly expires: number }> {
    const url = `${it.service.url}/api/decide/webhook`;
    const answer = await post<{ decisionId: string; recommendation: string }>(url, { action });
    assert.deepEqual([answer.status, answer.body.recommendation], [200, 'pay_and_execute']);
    const { decisionId } = answer.body;
    const log = await it.paid.log.open();
    const [recorded] = await log.readStream(`decision-${decisionId}`);
    assert.ok(recorded);
    const id = `${decisionId.slice(0, -1)}${decisionId.endsWith('0') ? '1' : '0'}`;
    const expires = Date.now() + DECISION_LIVES_MS;
    const data = { ...recorded.data, decisionId: id, expiresAt: new Date(expires).toISOString() };
    const event = { id: randomUUID(), type: recorded.type, data, metadata: recorded.metadata };
    await log.append(`decision-${id}`, 'no_stream', [event]);
    await log.close();
    return { id, expires };
  }
});

/** The headers of both versions with another text in them. */
function withHeaders(
  payment: Payment,
  ...changes: readonly (readonly [text: string, other: string])[]
): Payment {
  const changed = (headers: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        const before = Buffer.from(value, 'base64').toString();
        const after = changes.reduce((text, [from, to]) => text.replaceAll(from, to), before);
        assert.notEqual(after, before);
        return [name, Buffer.from(after).toString('base64')];
      }),
    );
  return { ...payment, headers: { 1: changed(payment.headers[1]), 2: changed(payment.headers[2]) } };
}
