// A paid call is executed, also if the circumstances have changed since it was accepted; a failing target is a paid attempt.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  GUIDED,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { type Body, makePaidWorld, type PaidWorld, SAMPLES, type Sample } from '#test/support/paid-world.ts';
import { challenge, makePayment } from '#test/support/payer.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { payloadOf } from '#test/support/service-receipts.ts';
import { post } from '#test/support/service-world.ts';

const needs = needsAnvil();
/** Long enough for all calls to be accepted, on a slow machine too. */
const DECISION_LIVES_MS = 20_000;

describe('paid, then the circumstances changed', () => {
  let paid: PaidWorld;
  let service: Service;
  let log: Awaited<ReturnType<typeof sqliteEventLog>>;
  /** All but the first accepted, their settlement unknown; the decision expires while the other tests run. */
  let decided: { readonly id: string; readonly expires: number; readonly samples: readonly Sample[] };
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
    log = await sqliteEventLog({ file: join(paid.dataDir, 'events.db') });
    // One decision approves one execution for each payer.
    const action = { url: paid.target.url('/decided'), body: 1, idempotencyKey: 'decided' };
    const { id, expires } = await shortDecision(action);
    const more = () => ({ url: undefined, body: undefined, decisionId: id, action });
    const samples = await paid.samples(service, 'decided', { more, count: SAMPLES + 1 });
    await each(samples.slice(1), (sample) => leaveUnknown(sample));
    assert.ok(Date.now() < expires, 'all were accepted in time');
    decided = { id, expires, samples };
  });
  after(async () => {
    await log?.close();
    await paid?.end();
  });

  /** Accepted, its settlement unknown, nothing charged yet. */
  async function leaveUnknown(sample: Sample, by = service): Promise<void> {
    paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? 'json_500' : 'pass'));
    const route = 'decisionId' in sample.request ? GUIDED : EXECUTE;
    assertSaid(await sendPatiently(by, sample, { route }), 503, 'payment_unconfirmed');
  }

  const oneMore = async ({ payer }: Sample) => makePayment(payer, await challenge(`${service.url}${GUIDED}`));

  /** A real decision with another id, which expires soon. */
  async function shortDecision(action: Body): Promise<{ readonly id: string; readonly expires: number }> {
    const answer = await post<{ decisionId: string; recommendation: string }>(
      `${service.url}/api/decide/webhook`,
      { action },
    );
    assert.deepEqual([answer.status, answer.body.recommendation], [200, 'pay_and_execute']);
    const { decisionId } = answer.body;
    const [recorded] = await log.readStream(`decision-${decisionId}`);
    assert.ok(recorded);
    const id = `${decisionId.slice(0, -1)}${decisionId.endsWith('0') ? '1' : '0'}`;
    const expires = Date.now() + DECISION_LIVES_MS;
    const data = { ...recorded.data, decisionId: id, expiresAt: new Date(expires).toISOString() };
    const event = { id: randomUUID(), type: recorded.type, data, metadata: recorded.metadata };
    await log.append(`decision-${id}`, 'no_stream', [event]);
    return { id, expires };
  }

  test(
    'the target’s name does not resolve any more: a failure with a receipt, charged once',
    needs,
    async () => {
      const host = 'gone.target.test';
      const more = (n: number) => ({ url: paid.target.url(`/gone/${n}`, host) });
      const samples = await paid.samples(service, 'gone', { more });
      await each(samples, (sample) => leaveUnknown(sample));
      paid.dns.set(host, { rcode: 'NXDOMAIN' });
      await each(samples, async (sample) => {
        const payment = await oneMore(sample);
        assertSaid(await sendPatiently(service, sample, { payment }), 400, 'target_unresolvable');
        const failed = assertDelivered(await sendPatiently(service, sample), sample, { status: 502 });
        assert.deepEqual([failed.job.errorCategory, failed.job.attempts], ['dns_error', 1]);
      });
      await paid.assertBooks(samples, { calls: 0, charges: 1 });
    },
  );

  test('the quota is spent: executed, charged once', needs, async () => {
    const own = { DATA_DIR: join(paid.folder, 'quota') };
    const strict = await paid.start({ ...own, POLICY_MODE: 'blocklist-quota', TARGET_QUOTA_PER_MINUTE: '1' });
    const more = (n: number) => ({ url: paid.target.url(`/quota/${n}`, `quota-${n}.target.test`) });
    const samples = await paid.samples(strict, 'quota', { more });
    await each(samples, (sample) => leaveUnknown(sample, strict));
    await each(samples, async (sample) => {
      const payment = await oneMore(sample);
      assertSaid(await sendPatiently(strict, sample, { payment }), 429, 'target_quota_exceeded');
      assertDelivered(await sendPatiently(strict, sample), sample);
      assertSaid(await sendPatiently(strict, sample, { payment }), 429, 'target_quota_exceeded');
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('the decision has expired: executed, receipted, charged once', needs, async () => {
    const { id, expires, samples } = decided;
    const [stranger, ...accepted] = samples;
    assert.ok(stranger);
    await waitFor('the decision is over', () => Date.now() > expires);
    assertSaid(await send(service, stranger, { route: GUIDED }), 409, 'decision_expired');
    await each(accepted, async (sample) => {
      const executed = assertDelivered(await sendPatiently(service, sample, { route: GUIDED }), sample);
      assert.deepEqual([executed.job.decisionId, payloadOf(executed.receipt.jws).decisionId], [id, id]);
      const again = await send(service, sample, { route: GUIDED });
      assert.deepEqual(assertDelivered(again, sample, { replay: true }).job, executed.job);
    });
    // All their requests went to the action's path.
    await paid.assertBooks(accepted, { calls: 0, charges: 1 });
    await paid.assertBooks([stranger], { calls: 0, charges: 0 });
    assert.equal(paid.hits({ path: '/decided' }), SAMPLES);
  });

  const hang = () => new Promise<undefined>(() => undefined);
  for (const [row, category, answer] of [
    ['status-500', 'target_server_error', () => ({ status: 500 })],
    ['hang', 'timeout', hang],
  ] as const) {
    test(
      `target ${row}: 502 with the payment header, charged once; a replay gives the same 502`,
      needs,
      async () => {
        const timeoutMs = answer === hang ? 1000 : 10_000;
        paid.target.answer(answer);
        paid.proxy.rule(() => 'pass');
        const samples = await paid.samples(service, row, { more: () => ({ timeoutMs }) });
        await each(samples, async (sample) => {
          const failed = assertDelivered(await sendPatiently(service, sample), sample, { status: 502 });
          assert.equal(failed.job.errorCategory, category);
          for (const version of [2, 1] as const) {
            const again = await send(service, sample, { version });
            const replayed = assertDelivered(again, sample, { status: 502, replay: true, version });
            assert.deepEqual([replayed.job, replayed.receipt.jws], [failed.job, failed.receipt.jws]);
          }
          assert.equal(paid.proxy.callsOf('settle', sample.payment.nonce).length, 1);
        });
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      },
    );
  }
});
