// The facilitator fails: before verify, before settle, after settle. No one pays twice, no one is served without payment,
// and a repeat with the same payment header always works.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { challenge } from '#test/support/chain/payer.ts';
import type { Fault } from '#test/support/process/fault-proxy.ts';
import type { Service } from '#test/support/process/service.ts';
import {
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  send,
  sendPatiently,
} from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

const needs = needsAnvil();

describe('a facilitator that fails', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  /** Gives a facilitator 2 s, for those that never answer: the other one must not give up on a slow machine. */
  let hasty: Service;
  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start();
    const own = { DATA_DIR: join(paid.folder, 'hasty'), X402_FACILITATOR_TIMEOUT_MS: '2000' };
    hasty = await paid.start(own);
  });
  const facing = (fault: Fault) => (fault.startsWith('hang') ? hasty : service);
  after(() => paid.end());

  const calls = (kind: 'verify' | 'settle', { payment }: Sample) => paid.proxy.callsOf(kind, payment.nonce);
  const moves = (sample: Sample) => calls('settle', sample).filter(({ moved }) => moved).length;

  /** The first call of this kind fails, the others pass. */
  const failFirst = (kind: 'verify' | 'settle', fault: Fault) =>
    paid.proxy.rule((call) => (call.kind === kind && call.nth === 1 ? fault : 'pass'));

  const leaveUnknown = (samples: readonly Sample[], fault: Fault, by = service) =>
    paid.leaveUnknown(samples, fault, (sample) => sendPatiently(by, sample));

  /** 503, not charged or not known to be; `Retry-After` says when to repeat. */
  async function assertUnserved(sample: Sample, code: string, by = service): Promise<void> {
    const sent = await sendPatiently(by, sample);
    assertSaid(sent, 503, code);
    assert.match(sent.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal(paid.hits(sample), 0);
  }

  // Of each way to fail there is one here: test/adapters/payments/facilitator.test.ts has all of them.
  for (const fault of ['not_json', 'hang'] as const) {
    test(`verify: ${fault}: 503, nothing charged; the same header works later`, async () => {
      const by = facing(fault);
      const samples = await paid.samples(by, `verify-${fault}`);
      // Every verify: one that breaks a kept connection is repeated on a new one.
      paid.proxy.rule((call) => (call.kind === 'verify' ? fault : 'pass'));
      await each(samples, (sample) => assertUnserved(sample, 'facilitator_unavailable', by));
      for (const sample of samples) assert.equal(calls('settle', sample).length, 0);
      await paid.assertBooks(samples, { calls: 0, charges: 0 });
      paid.proxy.rule(() => 'pass');
      await each(samples, async (sample) => assertDelivered(await sendPatiently(by, sample), sample));
      for (const sample of samples) assert.deepEqual([calls('settle', sample).length, moves(sample)], [1, 1]);
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  test('down: 402s are answered all the same, paid calls are 503, nothing charged; up: the same header works', async () => {
    const samples = await paid.samples(service, 'down');
    paid.proxy.rule(() => 'pass');
    await paid.proxy.down();
    await each(samples, (sample) => assertUnserved(sample, 'facilitator_unavailable'));
    assert.equal((await challenge(`${service.url}${EXECUTE}`)).accepts.length, 1);
    await paid.proxy.up();
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
    await each(samples, async (sample) => assertDelivered(await sendPatiently(service, sample), sample));
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  for (const fault of ['json_500', 'refuse'] as const) {
    test(`settle, nothing settled: ${fault}: 503; the same header: one call, charged once`, async () => {
      const by = facing(fault);
      const samples = await paid.samples(by, `settle-${fault}`, {
        more: () => ({ idempotencyKey: 'key' }),
      });
      failFirst('settle', fault);
      await each(samples, (sample) => assertUnserved(sample, 'payment_unconfirmed', by));
      await paid.assertBooks(samples, { calls: 0, charges: 0 });
      await each(samples, async (sample) => assertDelivered(await sendPatiently(by, sample), sample));
      for (const sample of samples) assert.deepEqual([calls('settle', sample).length, moves(sample)], [2, 1]);
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  for (const fault of ['cut', 'pending'] as const) {
    test(`settled, and its answer lost: ${fault}: 503; recovered by the same header: one call, charged once`, async () => {
      const by = facing(fault);
      const samples = await paid.samples(by, `lost-${fault}`);
      await leaveUnknown(samples, fault, by);
      await paid.assertBooks(samples, { calls: 0, charges: 1 });
      await each(samples, async (sample) => {
        const first = assertDelivered(await sendPatiently(by, sample), sample);
        for (const version of [1, 2] as const) {
          const expected = { replay: true, version };
          const again = assertDelivered(await send(by, sample, { version }), sample, expected);
          assert.deepEqual(again.job, first.job);
        }
      });
      for (const sample of samples) assert.equal(moves(sample), 1);
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }
});
