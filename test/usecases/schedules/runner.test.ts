// What becomes of a run: each row of the failure table, over the real execution with one or two processes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { readReceipt, runOf } from '#src/domain/receipt/payload.ts';
import { Fault } from '#src/domain/refusal.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { JOB, load, PAYMENT } from '#src/usecases/process/stream.ts';
import { type Bought, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { callInput } from '#test/support/given/given-call.ts';
import { T0 } from '#test/support/given/given-events.ts';
import { Crash, dies, gate, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
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
  scheduleOf,
  scheduleWorld,
  skips,
} from '#test/support/world/fakes-schedules.ts';
import { audited } from '#test/support/world/fakes-world.ts';

const PAYMENT_1 = STREAM.payment(otherPayment('1', { nonce: `0x${'1'.repeat(64)}` }).hash);
const paymentStatus = async (it: ScheduleWorld, stream = PAYMENT_1) =>
  (await load(it, PAYMENT, stream)).state.status;
const UNUSED = { outcome: 'unused', chainTimeSeconds: T0 / 1000 } as const;
const at = (it: ScheduleWorld, ms: number) => it.clock.advance(ms - it.clock.now());
const chargedAndSent = ({ payments, outbound }: ScheduleWorld) => [
  payments.ledger.size,
  outbound.sent.length,
];

describe('a run', () => {
  test('is bought without a settlement, executed when it is due, and settled then', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    assert.deepEqual(bought.run, { run: 1, dueAt: new Date(dueOf(1)).toISOString() });
    assert.equal(await paymentStatus(it), 'absent');
    at(it, dueOf(1) - 1);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    at(it, dueOf(1) + 200);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
    const [ticket] = (await scheduleOf(it, idOf(bought))).tickets;
    const job = (await load(it, JOB, ticket?.jobId ?? '')).state;
    assert.ok(job.status === 'completed' && job.receipt !== null);
    const { payload } = readReceipt(job.receipt.jws);
    assert.deepEqual(payload && runOf(payload), {
      id: idOf(bought),
      run: 1,
      dueAt: bought.run.dueAt,
      lateByMs: 200,
    });
    const report = await audited(it, ticket?.jobId);
    assert.equal(report.ok, true);
    assert.ok(report.checks.some(({ name }) => name === 'schedule_matches'));
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });

  test('leaves the request readable while a further run may be paid for, and its authorization not', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    const [{ sealed } = { sealed: null }] = bought.schedule.tickets;
    at(it, dueOf(1));
    await it.pass();
    assert.equal(await it.common.vault.take(sealed ?? ''), null);
    assert.notEqual(await it.common.vault.take(bought.schedule.defined.sealed), null);
  });

  test('that is the only one leaves no key', async () => {
    const it = scheduleWorld();
    await create(
      it,
      buyerWith(it, '1'),
      every10({ schedule: { type: 'once', runAt: new Date(dueOf(1)).toISOString() } }),
    );
    assert.equal(it.common.vault.keys.size, 2);
    at(it, dueOf(1));
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
    assert.equal(it.common.vault.keys.size, 0);
  });

  test('is free in demo mode, and executed once by two processes', async () => {
    const common = commonSchedules();
    const [a, b] = [freeWorld(common), freeWorld(common)];
    await create(a, FREE);
    for (const it of [a, b]) at(it, dueOf(1));
    await Promise.all([a.runner.pass(), b.runner.pass()]);
    await Promise.all([a.runner.settled(), b.runner.settled()]);
    assert.equal(a.outbound.sent.length + b.outbound.sent.length, 1);
  });

  test('stores neither the request nor the signature in the log', async () => {
    const it = scheduleWorld();
    await create(it);
    const text = JSON.stringify(it.log.events, (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    assert.ok(!text.includes('target.example') && !text.includes('hello'));
  });
});

describe('the process was not running when a run was due', () => {
  test('back later: missed and not charged; its payment is used for the next run if it lives that long', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    at(it, dueOf(1) + 311_000);
    await it.pass();
    assert.deepEqual(skips(it), ['1 missed']);
    assert.equal(await paymentStatus(it), 'absent');
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    const { tickets, next } = await scheduleOf(it, idOf(bought));
    assert.deepEqual(
      tickets.map(({ run, status }) => [run, status]),
      [[2, 'funded']],
    );
    assert.equal(next?.run, 3);
    at(it, dueOf(2));
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
    assert.equal((await audited(it, tickets[0]?.jobId)).ok, true);
  });

  describe('that may not be caught up', () => {
    const punctual = async () => {
      const it = scheduleWorld();
      await create(it, buyerWith(it, '1', dueOf(1) + 420_000), every10({ catchUpSeconds: 0 }));
      return it;
    };

    test('is executed although the next look is late, if the process was up when it was due', async () => {
      const it = await punctual();
      at(it, dueOf(1) - 1);
      await it.pass();
      at(it, dueOf(1) + 4000);
      await it.pass();
      assert.deepEqual([skips(it), chargedAndSent(it)], [[], [1, 1]]);
    });

    test('is missed if the process starts later', async () => {
      const it = await punctual();
      at(it, dueOf(1) + RUN_TIMES.lookMs + 1);
      await it.pass();
      assert.deepEqual([skips(it), chargedAndSent(it)], [['1 missed'], [0, 0]]);
    });
  });

  test('back later, and the payment ends before the next run: released, and its key deleted', async () => {
    const it = scheduleWorld();
    const bought = await create(it, buyerWith(it, '1', dueOf(1) + 420_000));
    at(it, dueOf(1) + 311_000);
    await it.pass();
    assert.deepEqual(skips(it), ['1 missed']);
    assert.equal(await paymentStatus(it), 'released');
    const [{ sealed } = { sealed: '' }] = bought.schedule.tickets;
    assert.equal(await it.common.vault.take(sealed ?? ''), null);
    assert.deepEqual(chargedAndSent(it), [0, 0]);
  });
});

test('runs without a payment are skipped; after three in a row the schedule is paused until the next payment', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  for (let n = 1; n <= 6; n++) {
    at(it, dueOf(n) + 1000);
    await it.pass();
  }
  assert.deepEqual(skips(it), ['2 not_funded', '3 not_funded', '4 not_funded']);
  assert.equal((await scheduleOf(it, idOf(bought))).status, 'paused');
  const again = await fundNext(it, idOf(bought), buyerWith(it, '2'));
  assert.equal(again.schedule.status, 'active');
  assert.deepEqual(again.run, { run: 6, dueAt: new Date(dueOf(7)).toISOString() });
  at(it, dueOf(7));
  await it.pass();
  assert.deepEqual(chargedAndSent(it), [2, 2]);
});

describe('the answer of the settlement is lost', () => {
  test('found on the chain within the catch-up: executed, charged once', async () => {
    const it = scheduleWorld();
    await create(it);
    at(it, dueOf(1));
    it.payments.scriptSettle((payment) => {
      it.payments.move(payment);
      return { outcome: 'unknown', cause: 'timeout', transaction: null };
    });
    it.payments.scriptLookUp(UNUSED, { outcome: 'unavailable' });
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 0]);
    it.clock.advance(6000);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
    assert.deepEqual(skips(it), []);
  });
});

describe('killed', () => {
  const STEPS = ['RunStarted', 'PaymentReserved', 'PaymentSettled', 'JobStarted'] as const;
  for (const type of STEPS)
    for (const when of ['before', 'after'] as const)
      test(`${when} ${type} is stored: the next process makes the call at most once, charged once`, async () => {
        const common = commonSchedules();
        const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
        await create(a);
        for (const it of [a, b]) at(it, dueOf(1));
        common.log.onNext(type, dies(when));
        await a.pass();
        // The killed process is gone; the other one watches, and takes the run over.
        for (let n = 0; n < 8; n++) {
          await b.pass();
          b.clock.advance(20_000);
        }
        const sent = a.outbound.sent.length + b.outbound.sent.length;
        const isStarted = type === 'JobStarted' && when === 'after';
        assert.equal(sent, isStarted ? 0 : 1);
        assert.equal(common.payments.ledger.size, 1);
      });

  for (const type of ['PaymentDeferred', 'ScheduleDefined'] as const)
    for (const when of ['before', 'after'] as const)
      test(`${when} ${type} is stored: the same payment buys the run once`, async () => {
        const common = commonSchedules();
        const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
        common.log.onNext(type, dies(when));
        await assert.rejects(letPass(a.clock, createSchedule(a.deps, every10(), buyerWith(a, '1'))), Crash);
        const bought = await create(b, buyerWith(b, '1'));
        assert.equal(bought.run.run, 1);
        assert.notEqual(bought.cancelToken, null);
        at(b, dueOf(1));
        await b.pass();
        assert.deepEqual(chargedAndSent(b), [1, 1]);
        const streams = new Set(common.log.events.map(({ stream }) => stream));
        assert.equal([...streams].filter((name) => name.startsWith('schedule-')).length, 1);
      });

  test('while a cancellation is under way: the next look completes it', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    it.log.onNext('PaymentReleased', dies('before'));
    await assert.rejects(cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? ''), Crash);
    assert.equal(await paymentStatus(it), 'absent');
    at(it, dueOf(1));
    await it.pass();
    assert.equal(await paymentStatus(it), 'released');
    assert.deepEqual(skips(it), ['1 cancelled']);
    assert.equal(it.common.vault.keys.size, 0);
    assert.deepEqual(chargedAndSent(it), [0, 0]);
  });
});

test('the previous run is still running: skipped as overlap, not charged', async () => {
  const it = scheduleWorld();
  const bought = await create(
    it,
    buyerWith(it, '1'),
    every10({ schedule: { type: 'interval', everyMinutes: 1, startAt: new Date(dueOf(1)).toISOString() } }),
  );
  await fundNext(it, idOf(bought), buyerWith(it, '2'));
  const held = Promise.withResolvers<void>();
  it.outbound.script(async () => {
    await held.promise;
    return { ...(await import('#test/support/world/fakes.ts')).succeeding() };
  });
  at(it, dueOf(1));
  await it.runner.pass();
  for (let i = 0; i < 20; i++) await quiet();
  assert.equal(it.outbound.sent.length, 1);
  at(it, dueOf(1) + 60_000);
  await it.runner.pass();
  await quiet();
  assert.deepEqual(skips(it), ['2 overlap']);
  held.resolve();
  await letPass(it.clock, it.runner.settled());
  assert.deepEqual(chargedAndSent(it), [1, 1]);
});

describe('cancelled', () => {
  test('before the start: no run, payments released, keys deleted; only by its token', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    await fundNext(it, idOf(bought), buyerWith(it, '2'));
    const wrong = await cancelSchedule(it.deps, idOf(bought), 'wrong');
    assert.ok('refused' in wrong && wrong.refused === 'schedule_not_found');
    const cancelled = await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
    assert.ok(!('refused' in cancelled));
    assert.deepEqual(skips(it), ['1 cancelled', '2 cancelled']);
    assert.equal(it.common.vault.keys.size, 0);
    at(it, dueOf(1));
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    const more = await fundRun(it.deps, idOf(bought), buyerWith(it, '3'));
    assert.ok('refused' in more && more.refused === 'schedule_ended');
  });

  test('after its payment is reserved: the run ends, charged once, and is named', async () => {
    const it = scheduleWorld();
    const bought = await create(it);
    const settled = gate();
    it.log.onNext('PaymentSettled', settled.frozen);
    at(it, dueOf(1));
    await it.runner.pass();
    await settled.reached;
    const cancelled = await cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? '');
    assert.ok(!('refused' in cancelled));
    assert.deepEqual(
      cancelled.underWay.map(({ run }) => run),
      [1],
    );
    settled.open();
    await letPass(it.clock, it.runner.settled());
    assert.deepEqual(chargedAndSent(it), [1, 1]);
    assert.deepEqual(skips(it), []);
  });
});

describe('clocks', () => {
  test('set back: no run is executed twice', async () => {
    const it = scheduleWorld();
    await create(it);
    at(it, dueOf(1));
    await it.pass();
    it.clock.skew(-600_000);
    await it.pass();
    it.clock.advance(600_000);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });

  test('ahead of the store by more than 5 s: no start and no sale, logged once; started when they have agreed for a minute', async () => {
    const it = scheduleWorld();
    await create(it);
    it.clock.skew(dueOf(1) - it.clock.now());
    it.common.vault.clock = T0;
    await it.pass();
    await it.pass();
    const isHeld = (error: unknown) => error instanceof Fault && error.code === 'schedules_unavailable';
    const later = every10({ schedule: { type: 'once', runAt: new Date(dueOf(9)).toISOString() } });
    const stored = it.log.events.length;
    await assert.rejects(letPass(it.clock, createSchedule(it.deps, later, buyerWith(it, '2'))), isHeld);
    assert.deepEqual([chargedAndSent(it), it.log.events.length], [[0, 0], stored]);
    assert.equal(it.conditions.of('schedules')?.code, 'wrong_clock');
    assert.equal(it.logger.lines.filter(({ level }) => level === 'error').length, 1);
    it.common.vault.clock = dueOf(1);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    it.clock.advance(RUN_TIMES.clockAgreesMs);
    it.common.vault.clock = it.clock.now();
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });
});

describe('the event log', () => {
  test('is unavailable when a run is due: nothing runs; caught up within the window', async () => {
    const it = scheduleWorld();
    await create(it);
    at(it, dueOf(1));
    it.log.setAway(true);
    await it.runner.pass();
    assert.deepEqual(chargedAndSent(it), [0, 0]);
    it.log.setAway(false);
    it.clock.advance(60_000);
    await it.pass();
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });

  for (const [name, fault] of [
    ['loses the answer of', lostAnswer],
    ['does not take', unavailable],
  ] as const)
    for (const type of ['RunStarted', 'PaymentReserved', 'PaymentSettled'])
      test(`${name} ${type} once: executed once, charged once`, async () => {
        const it = scheduleWorld();
        await create(it);
        at(it, dueOf(1));
        it.log.onNext(type, fault);
        await letPass(it.clock, it.runner.pass());
        await letPass(it.clock, it.runner.settled());
        it.clock.advance(6000);
        await it.pass();
        assert.deepEqual(chargedAndSent(it), [1, 1]);
      });
});

test('the event log is unavailable: purchase and cancellation answer so', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  const readStream = async () => {
    throw new EventLogUnavailable();
  };
  const deps = { ...it.deps, log: { ...it.log, readStream } };
  const isFault = (error: unknown) => error instanceof Fault && error.code === 'event_log_unavailable';
  await assert.rejects(letPass(it.clock, fundRun(deps, idOf(bought), buyerWith(it, '2'))), isFault);
  const token = bought.cancelToken ?? '';
  await assert.rejects(letPass(it.clock, cancelSchedule(deps, idOf(bought), token)), isFault);
});

test('the event log confirms no cancellation: answered so after the limit of one append; a repeat completes it', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  const appending = gate();
  it.log.onNext('ScheduleCancelled', appending.frozen);
  const cancel = () => letPass(it.clock, cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? ''));
  const asked = it.clock.monotonic();
  await assert.rejects(
    cancel(),
    (error) =>
      error instanceof Fault && error.code === 'event_log_unavailable' && /repeat/.test(error.message),
  );
  assert.equal(it.clock.monotonic() - asked, 2000);
  appending.open();
  const cancelled = await cancel();
  assert.ok(!('refused' in cancelled));
  assert.deepEqual(skips(it), ['1 cancelled']);
  assert.equal(it.common.vault.keys.size, 0);
});

describe('the payment of a run', () => {
  test('buys nothing else, before the run and after it', async () => {
    const it = scheduleWorld();
    const buyer = buyerWith(it, '1');
    await create(it, buyer);
    const input = {
      ...callInput({ presented: buyer.presented, key: null }),
      request: every10().webhook,
    };
    const before = await executeWebhook(it.deps, input);
    assert.ok('refused' in before && before.refused === 'payment_reused');
    at(it, dueOf(1));
    await it.pass();
    const after = await executeWebhook(it.deps, input);
    assert.ok('refused' in after && after.refused === 'payment_reused');
    assert.deepEqual(chargedAndSent(it), [1, 1]);
  });

  test('presented again: the same schedule; for another schedule: refused', async () => {
    const it = scheduleWorld();
    const buyer = buyerWith(it, '1');
    const first = await create(it, buyer);
    const again = await create(it, buyer);
    assert.deepEqual(
      [idOf(again), again.run, again.cancelToken],
      [idOf(first), first.run, first.cancelToken],
    );
    const other = await createSchedule(it.deps, every10({ catchUpSeconds: 10 }), buyer);
    assert.ok('refused' in other && other.refused === 'payment_reused');
    const second = await fundNext(it, idOf(first), buyerWith(it, '2'));
    assert.equal(second.run.run, 2);
    assert.deepEqual((await fundNext(it, idOf(first), buyerWith(it, '2'))).run, second.run);
    at(it, dueOf(1));
    await it.pass();
    assert.equal((await create(it, buyer)).cancelToken, null);
  });

  test('of two copies of a purchase at one process, one defines the schedule', async () => {
    const it = scheduleWorld();
    const buyer = buyerWith(it, '1');
    it.log.onNext('ScheduleDefined', dies('before'));
    await assert.rejects(letPass(it.clock, createSchedule(it.deps, every10(), buyer)), Crash);
    const copies: Bought[] = [];
    const put: typeof it.deps.vault.put = async (...given) => {
      // The other copy is complete between the look-up of this one and its append.
      if (copies.length === 0) {
        const copy = await createSchedule(it.deps, every10(), buyer);
        if ('refused' in copy) throw new Error(copy.refused);
        copies.push(copy);
      }
      return it.common.vault.put(...given);
    };
    copies.push(await create({ ...it, deps: { ...it.deps, vault: { ...it.deps.vault, put } } }, buyer));
    const [one, other] = copies;
    assert.ok(one !== undefined && other !== undefined);
    assert.equal(idOf(one), idOf(other));
    const defined = it.log.events.filter(({ type }) => type === 'ScheduleDefined' || type === 'RunFunded');
    assert.deepEqual(
      defined.map(({ type }) => type),
      ['ScheduleDefined', 'RunFunded'],
    );
  });
});
