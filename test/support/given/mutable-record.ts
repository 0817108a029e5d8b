// A record with each type of event, which tests change event by event, and the name of each kind of event in it.
import assert from 'node:assert/strict';
import { TIMES } from '#src/domain/limits.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { Crash, dies } from '#test/support/log/fakes-log.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';
import {
  buyerWith,
  create,
  every10,
  fundNext,
  memoryVault,
  schedulesOf,
} from '#test/support/world/fakes-schedules.ts';
import { given } from '#test/support/world/fakes-world.ts';
import { givenRecord, nth } from './audited-record.ts';
import { execute } from './given-call.ts';
import { decided, guided } from './given-decision.ts';
import { CHAIN_STREAM, chainReconciled, hex, paymentMissing, settlementCorrected } from './given-events.ts';
import { begin, refund } from './given-refund.ts';
import { primitives, testKey } from './primitives.ts';

type Events = readonly RecordedEvent[];

/** What the use cases write, with at least one event of each type. */
export async function mutableRecord() {
  const it = await givenRecord();
  const second = testKey();
  await it.announce(second);
  // Guided and retried; refunded afterwards.
  const { decision } = await decided(it.it);
  await guided(it.it, decision.decisionId, { presented: otherPayment('a1') });
  await decided(it.it, { buyerPolicy: { maxPriceUsd: '0.001' } });
  it.outbound.script(failing(), succeeding());
  await letPass(it.clock, it.paid({ request: { retry: { attempts: 2, backoffMs: 0 } } }));
  await it.checkpoint();
  // The first charge is returned; the refund of the second is cancelled.
  const [first = '', other = ''] = [0, 1].map((n) => nth(it.log.events, 'PaymentReserved', n).stream);
  await refund(it.deps, first, { includeServed: true });
  await begin(it.deps, other, { includeServed: true });
  await cancelPaymentRefund(it.deps, other);
  // Rejected: its key is free again, and another payment takes it.
  it.payments.scriptSettle({ outcome: 'rejected', reason: 'insufficient_funds' });
  await it.paid({ key: 'rejected' });
  await it.paid({ key: 'rejected' });
  // Without an answer, then settled.
  it.payments.scriptSettle({ outcome: 'unknown', cause: 'timeout', transaction: null });
  await assert.rejects(execute(it.it, { presented: otherPayment('c1'), key: 'retried' }));
  await execute(it.it, { presented: otherPayment('c1'), key: 'retried' });
  // Two at once for one key: one of them gives its payment up. Much later another payment takes the key.
  await Promise.all([it.paid({ key: 'both' }), it.paid({ key: 'both' }, it.process())]);
  it.clock.advance(TIMES.idempotencyRetentionMs);
  await it.paid({ key: 'both' });
  // Charged, and the process ended before the job started, or after that.
  for (const moment of ['before', 'after'] as const) {
    it.log.onNext('JobStarted', dies(moment));
    await assert.rejects(it.paid(), Crash);
  }
  const corrected = nth(it.log.events, 'PaymentSettled', 3);
  await given(
    it.it,
    corrected.stream,
    settlementCorrected({
      jobId: String(corrected.data.jobId),
      recorded: String(corrected.data.transaction),
    }),
  );
  await compare(it, 1_001, [first], [{ ...GIFT, block: 1_010 }]);
  await compare(it, 1_031, [other]);
  await compare(it, 1_061, []);
  await compare(it, 1_091, []);
  const missed = nth(it.log.events, 'PaymentSettled', 2);
  await given(it.it, missed.stream, paymentMissing({ jobId: String(missed.data.jobId) }));
  await it.checkpoint();
  await it.cosign();
  await schedules(it);
  await it.checkpoint();
  it.signing.key = second;
  await it.retire(it.key);
  await it.paid();
  await it.checkpoint();
  await it.cosign();
  return it;
}

/** One is executed once, then missed, then without a payment until it is paused; another is cancelled. */
async function schedules(record: Awaited<ReturnType<typeof givenRecord>>): Promise<void> {
  const common = { ...record.it.common, vault: memoryVault(), presented: new Map() };
  const it = schedulesOf(record.it, common);
  const now = it.clock.now();
  const startAt = new Date(now + 60_000).toISOString();
  const schedule = { type: 'interval' as const, everyMinutes: 10, startAt };
  const bought = await create(it, buyerWith(it, '1', now + 700_000), every10({ schedule }));
  const id = bought.schedule.defined.scheduleId;
  await fundNext(it, id, buyerWith(it, '2', now + 800_000));
  for (const ms of [60_000, 1_020_000, 600_000, 600_000, 600_000]) {
    it.clock.advance(ms);
    await it.pass();
  }
  const other = { type: 'once' as const, runAt: new Date(it.clock.now() + 60_000).toISOString() };
  const cancelled = await create(
    it,
    buyerWith(it, '3', it.clock.now() + 700_000),
    every10({ schedule: other }),
  );
  await cancelSchedule(it.deps, cancelled.schedule.defined.scheduleId, cancelled.cancelToken ?? '');
}

const GIFT = { transaction: `0x${hex('9')}`, sender: '0x3333333333333333333333333333333333333333' };

/** A round of 30 blocks, which pays these payments and nothing else but gifts of one unit. */
function compare(
  it: Awaited<ReturnType<typeof givenRecord>>,
  fromBlock: number,
  paid: readonly string[],
  gifts: readonly (typeof GIFT & { readonly block: number })[] = [],
): Promise<void> {
  const round = chainReconciled({
    fromBlock,
    toBlock: fromBlock + 29,
    received: String(3000 * paid.length + gifts.length),
    transfers: paid.length + gifts.length,
    confirmed: paid.map((stream) => stream.slice('payment-'.length)),
    unattributed: gifts.map((gift) => ({ ...gift, amount: '1', transfers: 1 })),
  });
  return given(it.it, CHAIN_STREAM, round);
}

const served = (events: Events, member: 'paymentStream' | 'claimStream' | 'decisionId') =>
  new Set(events.filter(({ type }) => type === 'JobStarted').map(({ data }) => data[member]));

/** The event's type, and what an audit has besides it: the job or the receipt that names it. */
export function kinds(events: Events): (event: RecordedEvent) => string {
  const [payments, claims, decisions] = (['paymentStream', 'claimStream', 'decisionId'] as const).map(
    (member) => served(events, member),
  );
  const receipted = new Set(
    events.filter(({ type }) => type === 'ReceiptSigned').map(({ stream }) => stream),
  );
  return (event) => {
    const { type, stream, data } = event;
    if (stream.startsWith('job-')) return receipted.has(stream) ? type : `${type} of an open job`;
    if (stream.startsWith('payment-')) return payments?.has(stream) ? type : `${type} without a job`;
    if (stream.startsWith('claim-')) return claims?.has(stream) ? type : `${type} without a job`;
    if (stream.startsWith('decision-'))
      return decisions?.has(String(data.decisionId)) ? type : `${type} without a job`;
    if (type === 'SigningKeyActivated') return `${type} (${data.purpose})`;
    if (type === 'CheckpointSigned' && data.size === '0') return `first ${type}`;
    return type;
  };
}

/** Each signature is verified once, whatever record it is in. */
export function rememberedPrimitives(): typeof primitives {
  const verified = new Map<string, boolean | Promise<boolean>>();
  return {
    ed25519Verify(key, message, signature) {
      const name = [key, message, signature].map((bytes) => Buffer.from(bytes).toString('base64')).join();
      const known = verified.get(name) ?? primitives.ed25519Verify(key, message, signature);
      verified.set(name, known);
      return known;
    },
  };
}
