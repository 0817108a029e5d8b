// Schedules against strangers and faults: each test is a fault that was reproduced on real processes (N1 to N11).
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import type { Verified } from '#src/ports/payments.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { load, SCHEDULE } from '#src/usecases/process/stream.ts';
import { createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { callInput } from '#test/support/given/given-call.ts';
import { dies } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import {
  buyerWith,
  commonSchedules,
  create,
  dueOf,
  every10,
  FREE,
  freeWorld,
  fundNext,
  idOf,
  type ScheduleWorld,
  scheduleWorld,
  skips,
} from '#test/support/world/fakes-schedules.ts';

const at = (it: ScheduleWorld, ms: number) => it.clock.advance(ms - it.clock.now());
const chargedAndSent = ({ payments, outbound }: ScheduleWorld) => [
  payments.ledger.size,
  outbound.sent.length,
];
const hashOf = (n: number) => n.toString(16).padStart(64, '0');
const codeOf = (answer: object) => (isRefused(answer) ? answer.refused : 'bought');

describe('a schedule that is cancelled after its run has started (N1)', () => {
  test('and before the payment is reserved: the run ends at once, uncharged, and no later try charges it', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    at(it, dueOf(1));
    it.payments.scriptVerify({ outcome: 'unavailable' });
    await it.pass();
    const cancelled = await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
    assert.ok(!isRefused(cancelled));
    assert.deepEqual(cancelled.underWay, []);
    assert.deepEqual(skips(it), ['1 cancelled']);
    for (let n = 0; n < 10; n++) {
      it.clock.advance(20_000);
      await it.pass();
    }
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    assert.equal(it.common.vault.keys.size, 0);
  });

  test('while the payment is verified: nothing is settled', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    at(it, dueOf(1));
    it.payments.scriptVerify(async () => {
      await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
      return { outcome: 'valid' };
    });
    await it.pass();
    assert.deepEqual([chargedAndSent(it), skips(it)], [[0, 0], ['1 cancelled']]);
  });

  test('and a payment that is reserved after the cancellation is released, whichever process finds it', async () => {
    const common = commonSchedules();
    const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
    const bought = await create(a);
    for (const it of [a, b]) at(it, dueOf(1));
    // The process dies between its reservation and its check; the cancellation is stored in between.
    common.log.onNext('PaymentReserved', async (store) => {
      const { stream, expected } = await load(common, SCHEDULE, idOf(bought));
      await common.log.append(stream, expected, [cancelledEvent(idOf(bought))]);
      return dies('after')(store);
    });
    await a.pass();
    for (let n = 0; n < 4; n++) {
      await b.pass();
      b.clock.advance(20_000);
    }
    assert.deepEqual([common.payments.ledger.size, b.outbound.sent.length], [0, 0]);
    assert.deepEqual(skips(b), ['1 cancelled']);
  });
});

const cancelledEvent = (scheduleId: string) => ({
  id: crypto.randomUUID(),
  type: 'ScheduleCancelled',
  data: { v: 1, scheduleId, cancelledAt: new Date(dueOf(1)).toISOString() },
  metadata: {},
});

describe('further runs (N2)', () => {
  const stranger = (it: ScheduleWorld) => {
    const { presented, ...buyer } = buyerWith(it, '7');
    const payer = `0x${'9'.repeat(40)}`;
    return { ...buyer, payer, presented: presented && { ...presented, payer } };
  };

  test('are refused to a stranger, and nothing is stored', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    const stored = it.log.events.length;
    assert.equal(codeOf(await fundRun(it.deps, idOf(bought), stranger(it))), 'schedule_not_yours');
    const wrong = { ...stranger(it), token: 'x'.repeat(43) };
    assert.equal(codeOf(await fundRun(it.deps, idOf(bought), wrong)), 'schedule_not_yours');
    assert.deepEqual([it.log.events.length, it.payments.calls.verify], [stored, 1]);
  });

  test('are sold to the payer of run 1, and to a caller with its token', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    assert.equal((await fundNext(it, idOf(bought), buyerWith(it, '2'))).run.run, 2);
    const friend = { ...stranger(it), token: bought.cancelToken };
    assert.equal((await fundNext(it, idOf(bought), friend)).run.run, 3);
  });

  test('are sold by token only where calls are free', async () => {
    const it = freeWorld();
    const bought = await create(it, FREE);
    assert.equal(codeOf(await fundRun(it.deps, idOf(bought), FREE)), 'schedule_not_yours');
    const token = bought.cancelToken;
    assert.equal((await fundNext(it, idOf(bought), { ...FREE, token })).run.run, 2);
  });
});

describe('a ticket is worth money', () => {
  const sell = async (it: ScheduleWorld, balance: bigint | null, digit = '1') => {
    it.payments.funds.balance = balance;
    const before = [it.log.events.length, it.common.vault.keys.size];
    const answer = await letPass(it.clock, createSchedule(it.deps, every10(), buyerWith(it, digit))).catch(
      (error: unknown) => error as object,
    );
    return {
      answer,
      isStored: it.log.events.length !== before[0] || it.common.vault.keys.size !== before[1],
    };
  };

  test('the balance covers all open runs of the payer', async () => {
    const it = scheduleWorld();
    assert.equal(codeOf((await sell(it, 6000n, '1')).answer), 'bought');
    assert.equal(codeOf((await sell(it, 6000n, '2')).answer), 'bought');
    assert.deepEqual(await sell(it, 6000n, '3').then(({ isStored }) => isStored), false);
  });

  test('the balance covers the sum of what its open runs cost, each at the price of its purchase', async () => {
    const it = scheduleWorld();
    it.payments.funds.balance = 9000n;
    const dear = buyerWith(it, '1');
    assert.ok(dear.presented !== null);
    await create(it, { ...dear, presented: { ...dear.presented, amount: '6000' } });
    const { answer, isStored } = await sell(it, 8999n, '2');
    assert.deepEqual([codeOf(answer), isStored], ['payment_required', false]);
    assert.equal(codeOf((await sell(it, 9000n, '3')).answer), 'bought');
  });

  test('no answer of the node: 503, and nothing is stored', async () => {
    const it = scheduleWorld();
    const { answer, isStored } = await sell(it, null);
    assert.deepEqual(['code' in answer && answer.code, isStored], ['facilitator_unavailable', false]);
  });

  test('an authorization that is used already buys nothing', async () => {
    const it = scheduleWorld();
    const buyer = buyerWith(it, '1');
    if (buyer.presented !== null) it.payments.move(buyer.presented);
    it.payments.scriptVerify({ outcome: 'valid' });
    const { answer, isStored } = await sell(it, 6000n);
    assert.deepEqual([codeOf(answer), isStored], ['payment_required', false]);
  });
});

describe('the ticket of a contract wallet that is not valid yet', () => {
  /** The node answers so whether the wallet accepts its signature. */
  const sellWith = async (answer: Verified) => {
    const it = scheduleWorld();
    Object.assign(it.payments, {
      validateTicket: () => ({ kind: 'ticket', verifiedBy: 'node' }),
      verifySignature: async () => answer,
    });
    const buyer = buyerWith(it, '1');
    assert.ok(buyer.presented !== null);
    const contract = { ...buyer, presented: { ...buyer.presented, signer: 'contract' as const } };
    const buy = () =>
      letPass(it.clock, createSchedule(it.deps, every10(), contract)).catch(
        (error: unknown) => error as object,
      );
    const bought = await buy();
    return { it, buy, bought, stored: [it.log.events.length, it.common.vault.keys.size] };
  };

  test('is bought when the node says that the wallet accepts it; the facilitator is not asked', async () => {
    const { it, bought } = await sellWith({ outcome: 'valid' });
    assert.deepEqual([codeOf(bought), it.payments.calls.verify], ['bought', 0]);
  });

  test('is refused when the wallet does not accept it, and after some such attempts without a question', async () => {
    const { it, buy, bought, stored } = await sellWith({ outcome: 'invalid', reason: 'invalid_signature' });
    assert.deepEqual([codeOf(bought), stored], ['payment_required', [0, 0]]);
    const codes: string[] = [];
    for (let n = 0; n < LIMITS.contractWalletPerMinute.max; n++) codes.push(codeOf(await buy()));
    assert.equal(codes.at(-1), 'rate_limited');
    assert.deepEqual([it.log.events.length, it.common.vault.keys.size], [0, 0]);
  });

  test('is answered 503 when the node gives no answer, and nothing is stored', async () => {
    const { bought, stored } = await sellWith({ outcome: 'unavailable' });
    assert.deepEqual(['code' in bought && bought.code, stored], ['facilitator_unavailable', [0, 0]]);
  });
});

describe('the same payment again (N7)', () => {
  test('is the same answer after the run, a skip and a cancellation, at either route', async () => {
    const it = scheduleWorld();
    const [first, second] = [buyerWith(it, '1'), buyerWith(it, '2')];
    const bought = await create(it, first);
    const more = await fundNext(it, idOf(bought), second);
    at(it, dueOf(1));
    await it.pass();
    const token = bought.cancelToken ?? '';
    await cancelSchedule(it.deps, idOf(bought), token);
    assert.deepEqual(skips(it), ['2 cancelled']);
    const again = await create(it, first);
    assert.deepEqual([idOf(again), again.run, again.cancelToken], [idOf(bought), bought.run, null]);
    assert.deepEqual((await fundNext(it, idOf(bought), second)).run, more.run);
    assert.equal(it.log.events.filter(({ type }) => type === 'ScheduleDefined').length, 1);
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });

  test('buys no call after its run was skipped', async () => {
    const it = scheduleWorld();
    const buyer = buyerWith(it, '1');
    const bought = await create(it, buyer);
    await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
    const input = { ...callInput({ presented: buyer.presented, key: null }), request: every10().webhook };
    assert.equal(codeOf(await executeWebhook(it.deps, input)), 'payment_reused');
  });
});

describe('bounds (N8)', () => {
  test('50 new schedules of a payer a day, and 200 of a client address', async () => {
    const it = freeWorld();
    const take = async (client: string) => {
      const bought = await letPass(it.clock, createSchedule(it.deps, every10(), { ...FREE, client }));
      if (!isRefused(bought)) await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
      return codeOf(bought);
    };
    for (let n = 0; n < SCHEDULE_LIMITS.schedulesPerClient.max; n++) assert.equal(await take('c'), 'bought');
    assert.deepEqual([await take('c'), await take('d')], ['rate_limited', 'bought']);
  });

  test('the stored request is at most 16 kB', async () => {
    const it = scheduleWorld();
    const webhook = { url: 'https://target.example/', body: { text: 'x'.repeat(16_384) } };
    assert.equal(
      codeOf(await createSchedule(it.deps, every10({ webhook }), buyerWith(it, '1'))),
      'invalid_request',
    );
  });

  test('a purchase that is cancelled before its first run leaves at most 4 kB in the log, of the largest request', async () => {
    const it = scheduleWorld();
    Object.assign(it.deps, { authorizations: { ...it.deps.authorizations, write: () => 'x'.repeat(8192) } });
    const webhook = { url: 'https://target.example/', body: { text: 'x'.repeat(16_300) } };
    const bought = await create(it, buyerWith(it, '1'), every10({ webhook }));
    await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
    const { length } = JSON.stringify(
      it.log.events.map(({ stream, type, data, metadata }) => [stream, type, data, metadata]),
    );
    assert.ok(length <= 4096, `${length} bytes`);
    assert.equal(it.common.vault.keys.size, 0);
  });
});

test('a ticket without a payment never runs where calls are charged: terms_changed (N11)', async () => {
  const common = commonSchedules();
  await create(freeWorld(common), FREE);
  const it = scheduleWorld(common);
  at(it, dueOf(1));
  await it.pass();
  at(it, dueOf(1) + 430_000);
  await it.pass();
  assert.deepEqual([chargedAndSent(it), skips(it)], [[0, 0], ['1 terms_changed']]);
});

test('a key of a caller neither blocks nor replays a run', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  const claims = () =>
    it.log.events.filter(({ type }) => type === 'IdempotencyKeyClaimed').map(({ stream }) => stream);
  const { payer } = buyerWith(it, '5');
  for (const key of [`run:${idOf(bought)}:1`, JSON.stringify([idOf(bought), 1])])
    await letPass(it.clock, executeWebhook(it.deps, { ...callInput({ presented: null, key }), payer }));
  const before = claims();
  at(it, dueOf(1));
  await it.pass();
  await quiet();
  assert.equal(it.outbound.sent.filter(({ target }) => target.href.includes('/hook')).length > 0, true);
  assert.equal(new Set(claims()).size, before.length + 1);
});

test('runs that are bought and cancelled, from ever new wallets: so many of one client address a day', async () => {
  const it = scheduleWorld();
  const stranger = (n: number, client = 'c') => {
    const payer = `0x${n}`;
    const { presented, ...buyer } = buyerWith(it, '1');
    const own = presented && otherPayment(`${n}`, { ...presented, payer, nonce: `0x${n}`, hash: hashOf(n) });
    if (own !== null) it.common.presented.set(own.nonce, own);
    return { ...buyer, presented: own, payer, client };
  };
  const buy = (n: number, client?: string) =>
    letPass(it.clock, createSchedule(it.deps, every10(), stranger(n, client)));
  const { max } = LIMITS.unchargedPerDay;
  for (let n = 0; n < max; n++) {
    const bought = await buy(n);
    assert.ok(!isRefused(bought));
    await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
  }
  const refused = await buy(max);
  assert.ok(isRefused(refused) && refused.refused === 'rate_limited' && /not charged/.test(refused.message));
  assert.equal(codeOf(await buy(max + 1, 'another')), 'bought');
});
