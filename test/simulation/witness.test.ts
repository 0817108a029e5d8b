// What the witness counts as a fault of the service where a freeze or a clock makes the difference.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { Random } from '#test/support/world/random.ts';
import type { Intent, Made } from './buyers.ts';
import { EPOCH, Host } from './host.ts';
import { LogStore } from './log.ts';
import { simulatedChain } from './payments.ts';
import { Scheduler } from './scheduler.ts';
import { Trace } from './trace.ts';
import { Witness } from './witness.ts';

const REFUSED = { kind: 'refused', code: 'payment_required', jobId: null, retryMs: 0 } as const;

/** One process, and what watches it. */
function watched() {
  const random = new Random(1);
  const scheduler = new Scheduler(random);
  const trace = new Trace(scheduler, false);
  const log = new LogStore(trace, () => scheduler.now, false);
  const chain = simulatedChain(scheduler, random, trace);
  const witness = new Witness({ log, chain, scheduler, trace, isPaid: true, keepsState: true });
  const host = new Host('process 1', scheduler, random, trace);
  witness.hosts.push(host);
  return { scheduler, log, chain, witness, host };
}

/** A payment is reserved at `reservedAt`, its money comes, and a process frozen from 1000 ms to 9000 ms answers 402. */
async function violationsOf({ reservedAt, answeredAt }: { reservedAt: number; answeredAt: number }) {
  const { scheduler, log, chain, witness, host } = watched();
  const payment = presentedPayment({ validBefore: String(Date.UTC(2030, 0) / 1000) });
  const intent: Intent = {
    id: 1,
    payer: payment.payer,
    client: '127.0.0.1',
    path: '/',
    key: null,
    attempts: 1,
    timeoutMs: 1000,
    method: 'POST',
    payments: [payment],
    calls: [],
    isOpen: true,
  };
  const made: Made = {
    intent,
    payment,
    isOther: false,
    relay: host.name,
    at: 0,
    answer: null,
    answeredAt: 0,
    isResolved: false,
  };
  const { payer, nonce } = payment;
  const reserve = () => {
    const stream = STREAM.payment(payment.hash);
    const events = [{ id: 'id', type: 'PaymentReserved', data: '{}', metadata: '{}' }];
    log.appendTogether([{ stream, expected: 'no_stream', events }]);
    chain.submit('use', [], { payer, nonce, validBefore: Number(payment.validBefore) }, 0);
  };
  scheduler.after(reservedAt, null, reserve);
  scheduler.after(1000, null, () => host.freeze(8000));
  scheduler.after(answeredAt, host, () => witness.answered(made, REFUSED));
  await scheduler.run(60_000, () => false);
  return witness.violations.map(({ invariant }) => invariant);
}

test('a 402 that was decided before a freeze, within which a copy was accepted, is no fault', async () => {
  assert.deepEqual(await violationsOf({ reservedAt: 1020, answeredAt: 1001 }), []);
});

test('a 402 is a fault if the log had the payment before the freeze, or the process has run since', async () => {
  const fault = ['never_402_when_paid'];
  assert.deepEqual(await violationsOf({ reservedAt: 900, answeredAt: 1001 }), fault);
  assert.deepEqual(await violationsOf({ reservedAt: 1020, answeredAt: 9001 }), fault);
});

/** A process whose clock is set twice starts a job at `startedAt` and lives; recovery closes the job 100 s later. */
async function closedWith(offsets: readonly [number, number], startedAt: number) {
  const { scheduler, log, witness, host } = watched();
  let stored = 0;
  const store = (stream: string, expected: 'no_stream' | bigint, type: string, data: object) => {
    const events = [{ id: `id ${++stored}`, type, data: JSON.stringify(data), metadata: '{}' }];
    log.appendTogether([{ stream, expected, events }]);
  };
  const key = { purpose: 'receipt', activatedAt: new Date(EPOCH).toISOString() };
  store('keys', 'no_stream', 'SigningKeyActivated', key);
  scheduler.after(1000, null, () => host.setClock(offsets[0]));
  scheduler.after(2000, null, () => host.setClock(offsets[1]));
  const start = { owner: 'process 1 x', leaseMs: 5000 };
  scheduler.after(startedAt, null, () => store('job-1', 'no_stream', 'JobStarted', start));
  const end = { closedBy: 'recovery' };
  scheduler.after(startedAt + 100_000, null, () => store('job-1', 0n, 'JobCompleted', end));
  await scheduler.run(200_000, () => false);
  return witness.violations.map(({ invariant }) => invariant);
}

test('recovery closes the job of a living process: a fault unless its clock was set to before its keys are valid', async () => {
  const fault = ['live_job_closed'];
  assert.deepEqual(await closedWith([20_000, -500], 3000), fault);
  // Its clock was so only before the job.
  assert.deepEqual(await closedWith([-3_600_000, 0], 3000), fault);
  assert.deepEqual(await closedWith([-3_600_000, 0], 1500), []);
  assert.deepEqual(await closedWith([0, -3_600_000], 3000), []);
});
