// What an audit finds, and what it does not: each event of a real record is changed member by member, dropped, doubled and
// swapped. Each class of changes is found, with the finding that the table names, or a sentence of the guide lists it as
// undetected. A new event type or member needs a row; a listed class that is found by now needs another sentence.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Finding, FindingKind } from '#src/domain/audit/finding.ts';
import { EVENT_TYPES } from '#src/domain/events.ts';
import { TIMES } from '#src/domain/limits.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { Auditor } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { givenRecord, nth } from '#test/support/audited-record.ts';
import { failing, letPass, succeeding } from '#test/support/fakes.ts';
import { Crash, dies } from '#test/support/fakes-log.ts';
import { otherPayment } from '#test/support/fakes-payments.ts';
import {
  buyerWith,
  create,
  every10,
  fundNext,
  memoryVault,
  schedulesOf,
} from '#test/support/fakes-schedules.ts';
import { given } from '#test/support/fakes-world.ts';
import { execute } from '#test/support/given-call.ts';
import { decided, guided } from '#test/support/given-decision.ts';
import {
  CHAIN_STREAM,
  chainReconciled,
  hex,
  paymentMissing,
  settlementCorrected,
} from '#test/support/given-events.ts';
import { begin, refund } from '#test/support/given-refund.ts';
import { memoryScratch } from '#test/support/memory-scratch.ts';
import { mutations, swapsAcrossStreams } from '#test/support/mutations.ts';
import { primitives, testKey } from '#test/support/primitives.ts';
import { rootPath } from '#test/support/runtime.ts';

type Events = readonly RecordedEvent[];

/** Sentences of src/verify/README.md, "What no audit can detect", each by its first words. */
const LISTED = {
  outcome: 'whether a correctly signed outcome is true',
  others: 'whether others are shown the same record',
  uncovered: 'what was omitted before the first kept checkpoint',
  unsigned: 'times, metadata and ids that no receipt signs',
  payment: '`validBefore`, `owner`, `evidence` and `statement` of a payment',
  unserved: 'a payment that bought no job',
  schedule: 'a schedule',
  unknown: '`SettlementUnknown` and `SettlementRetried`',
  claim: 'a claim of an idempotency key whose job never started',
  decision: 'a decision that no job names',
  openJob: 'a job without a receipt',
  refund: 'a refund',
  chain: 'the comparisons with the chain',
  cosigned: 'what witnesses have cosigned',
  order: 'the order of events of different streams',
} as const;
type Listed = keyof typeof LISTED;

/**
 * For each kind of event: which changes have which verdict. `*`: all that no other row names. A change is a member, or
 * dropped, doubled (under a new id), copied (with its id), swapped with the next event of its stream, or removed with its
 * stream.
 */
const TABLE: Readonly<
  Record<string, readonly (readonly [changes: string, verdict: FindingKind | Listed])[]>
> = {
  JobStarted: [
    ['jobId', 'stream_mismatch'],
    ['dropped', 'receipt_without_job'],
    ['doubled swapped', 'job_event_impossible'],
    ['removed', 'checkpoint_ahead'],
    ['*', 'receipt_chain_mismatch'],
  ],
  AttemptMade: [
    ['jobId', 'stream_mismatch'],
    ['dropped doubled swapped', 'job_event_impossible'],
    ['*', 'receipt_chain_mismatch'],
  ],
  JobCompleted: [
    ['jobId', 'stream_mismatch'],
    ['dropped swapped', 'receipt_without_job'],
    ['doubled', 'job_event_impossible'],
    ['*', 'receipt_chain_mismatch'],
  ],
  ReceiptSigned: [
    ['jobId', 'stream_mismatch'],
    ['receiptId', 'receipt_content_mismatch'],
    ['decisionId keyId signedAt', 'receipt_event_mismatch'],
    ['jws', 'checkpoint_root_mismatch'],
    ['dropped', 'receipt_missing'],
    ['doubled', 'receipt_repeated'],
    ['id', 'unsigned'],
  ],
  'JobStarted of an open job': [
    ['jobId', 'stream_mismatch'],
    ['mode route decisionId doubled', 'job_event_impossible'],
    ['fingerprint paymentStream payment', 'payment_mismatch'],
    ['claimStream', 'claim_mismatch'],
    ['paymentStream→null', 'payment_missing'],
    ['claimStream→null', 'openJob'],
    ['schedule', 'schedule_mismatch'],
    ['*', 'openJob'],
  ],
  PaymentReserved: [
    ['jobId fingerprint scheme network asset amount payTo payer payloadHash', 'payment_mismatch'],
    ['nonce', 'stream_mismatch'],
    ['dropped removed', 'payment_missing'],
    ['doubled swapped', 'payment_event_impossible'],
    ['validBefore owner x402Version', 'payment'],
    ['id reservedAt', 'unsigned'],
  ],
  PaymentSettled: [
    ['transaction dropped', 'payment_mismatch'],
    ['jobId doubled swapped', 'payment_event_impossible'],
    ['evidence statement', 'payment'],
    ['id settledAt', 'unsigned'],
  ],
  'PaymentReserved without a job': [
    ['jobId dropped doubled swapped', 'payment_event_impossible'],
    ['network asset payer nonce', 'stream_mismatch'],
    ['removed', 'payment_missing'],
    ['*', 'unserved'],
  ],
  'PaymentSettled without a job': [
    ['jobId doubled', 'payment_event_impossible'],
    ['*', 'unserved'],
  ],
  'PaymentRejected without a job': [
    ['jobId doubled', 'payment_event_impossible'],
    // Its key was taken by another payment.
    ['dropped', 'claim_event_impossible'],
    ['*', 'unserved'],
  ],
  'PaymentReleased without a job': [
    ['jobId doubled', 'payment_event_impossible'],
    ['*', 'unserved'],
  ],
  SettlementUnknown: [
    ['jobId', 'payment_event_impossible'],
    ['*', 'unknown'],
  ],
  SettlementRetried: [
    ['jobId swapped', 'payment_event_impossible'],
    ['*', 'unknown'],
  ],
  IdempotencyKeyClaimed: [
    ['jobId fingerprint', 'claim_mismatch'],
    ['paymentStream', 'payment_missing'],
    ['paymentStream→null', 'claim_mismatch'],
    ['dropped removed', 'claim_missing'],
    ['doubled swapped', 'claim_event_impossible'],
    ['id claimedAt', 'unsigned'],
  ],
  'IdempotencyKeyClaimed without a job': [
    ['jobId paymentStream', 'payment_mismatch'],
    ['paymentStream→null', 'claim'],
    ['doubled', 'claim_event_impossible'],
    ['*', 'claim'],
  ],
  IdempotencyKeyReleased: [
    ['jobId reason dropped doubled swapped', 'claim_event_impossible'],
    ['id releasedAt', 'unsigned'],
  ],
  DecisionRecorded: [
    ['decisionId', 'stream_mismatch'],
    ['dropped removed', 'decision_missing'],
    ['doubled', 'decision_event_impossible'],
    ['id', 'unsigned'],
    ['*', 'decision_mismatch'],
  ],
  'DecisionRecorded without a job': [
    ['decisionId', 'stream_mismatch'],
    ['doubled', 'decision_event_impossible'],
    ['*', 'decision'],
  ],
  RefundBegun: [
    ['jobId dropped doubled swapped', 'payment_event_impossible'],
    ['served statement', 'refund'],
    ['id begunAt', 'unsigned'],
  ],
  RefundCancelled: [
    ['jobId doubled', 'payment_event_impossible'],
    ['reason dropped', 'refund'],
    ['id cancelledAt', 'unsigned'],
  ],
  RefundClaimed: [
    ['network transaction', 'stream_mismatch'],
    ['transfers dropped removed', 'refund_unclaimed'],
    ['doubled released', 'refund_event_impossible'],
    ['id claimedAt', 'unsigned'],
  ],
  PaymentRefunded: [
    ['jobId doubled', 'payment_event_impossible'],
    ['asset amount payer', 'payment_mismatch'],
    ['network transaction sender', 'refund_unclaimed'],
    // As in a refund of version 1, which had no claim.
    ['sender→null', 'payment_shared'],
    ['evidence dropped', 'refund'],
    ['id refundedAt', 'unsigned'],
  ],
  PaymentMissing: [
    ['jobId doubled', 'payment_event_impossible'],
    ['*', 'chain'],
  ],
  SettlementCorrected: [
    ['jobId recorded doubled', 'payment_event_impossible'],
    ['transaction dropped', 'chain'],
    ['id correctedAt', 'unsigned'],
  ],
  ChainReconciled: [
    ['network payee', 'stream_mismatch'],
    ['asset received transfers confirmed unattributed', 'chain_event_mismatch'],
    ['fromBlock toBlock swapped', 'chain_event_impossible'],
    ['*', 'chain'],
  ],
  'SigningKeyActivated (receipt)': [
    ['keyId x', 'key_id_mismatch'],
    ['dropped removed', 'checkpoint_ahead'],
    ['id', 'unsigned'],
    ['*', 'checkpoint_root_mismatch'],
  ],
  'SigningKeyActivated (checkpoint)': [
    ['keyId x', 'key_id_mismatch'],
    ['dropped', 'checkpoint_signature_invalid'],
    ['id', 'unsigned'],
    ['*', 'checkpoint_root_mismatch'],
  ],
  SigningKeyRetired: [
    ['dropped', 'checkpoint_ahead'],
    ['id', 'unsigned'],
    ['*', 'checkpoint_root_mismatch'],
  ],
  PaymentDeferred: [
    ['jobId doubled swapped', 'payment_event_impossible'],
    ['network asset payer nonce', 'stream_mismatch'],
    ['removed', 'payment_missing'],
    ['*', 'schedule'],
  ],
  'PaymentDeferred without a job': [
    ['jobId dropped doubled swapped', 'payment_event_impossible'],
    ['network asset payer nonce', 'stream_mismatch'],
    ['*', 'schedule'],
  ],
  ScheduleDefined: [
    ['scheduleId', 'stream_mismatch'],
    ['next.run dropped doubled swapped', 'schedule_event_impossible'],
    ['removed', 'schedule_mismatch'],
    ['*', 'schedule'],
  ],
  RunFunded: [
    ['scheduleId', 'stream_mismatch'],
    ['run jobId next.run dropped doubled swapped', 'schedule_event_impossible'],
    ['dueAt paymentStream paymentStream→null', 'schedule_mismatch'],
    ['*', 'schedule'],
  ],
  RunStarted: [
    ['scheduleId', 'stream_mismatch'],
    ['run jobId doubled', 'schedule_event_impossible'],
    ['dropped swapped', 'schedule_mismatch'],
    ['*', 'schedule'],
  ],
  RunSkipped: [
    ['scheduleId', 'stream_mismatch'],
    ['run plannedJobId plannedJobId→null doubled', 'schedule_event_impossible'],
    ['*', 'schedule'],
  ],
  SchedulePaused: [
    ['scheduleId', 'stream_mismatch'],
    ['doubled', 'schedule_event_impossible'],
    ['*', 'schedule'],
  ],
  ScheduleCancelled: [
    ['scheduleId', 'stream_mismatch'],
    ['doubled', 'schedule_event_impossible'],
    ['*', 'schedule'],
  ],
  'first CheckpointSigned': [
    ['origin size root note', 'checkpoint_event_mismatch'],
    ['keyId', 'checkpoint_signature_invalid'],
    ['dropped removed', 'receipt_origin_mismatch'],
    ['swapped', 'checkpoint_shrinks'],
    ['doubled', 'checkpoint_repeated'],
    ['id signedAt', 'unsigned'],
  ],
  CheckpointSigned: [
    ['origin size root note', 'checkpoint_event_mismatch'],
    ['keyId', 'checkpoint_signature_invalid'],
    ['swapped', 'checkpoint_shrinks'],
    ['doubled', 'checkpoint_repeated'],
    ['id signedAt', 'unsigned'],
    ['dropped', 'uncovered'],
  ],
  CheckpointCosigned: [
    ['origin size root note', 'checkpoint_event_mismatch'],
    ['cosignatures swapped', 'cosigned_checkpoint_mismatch'],
    ['*', 'cosigned'],
  ],
};

/** For each two kinds of events that follow each other in different streams, and whose swap is found. All others: `order`. */
const SWAPS: Readonly<Record<string, FindingKind>> = {
  'ReceiptSigned ↔ CheckpointSigned': 'checkpoint_ahead',
  'CheckpointSigned ↔ CheckpointCosigned': 'cosigned_checkpoint_mismatch',
  'SigningKeyActivated (checkpoint) ↔ first CheckpointSigned': 'checkpoint_signature_invalid',
  'PaymentReserved ↔ IdempotencyKeyClaimed': 'payment_missing',
  'PaymentReserved without a job ↔ IdempotencyKeyClaimed': 'payment_missing',
  'PaymentReserved without a job ↔ IdempotencyKeyClaimed without a job': 'payment_missing',
  'PaymentSettled ↔ JobStarted': 'payment_mismatch',
  'PaymentSettled ↔ JobStarted of an open job': 'payment_mismatch',
  'RefundClaimed ↔ PaymentRefunded': 'refund_unclaimed',
};

/** What the use cases write, with at least one event of each type. */
async function record() {
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
function kinds(events: Events): (event: RecordedEvent) => string {
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
function auditing() {
  const verified = new Map<string, boolean | Promise<boolean>>();
  const cached: typeof primitives = {
    ed25519Verify(key, message, signature) {
      const name = [key, message, signature].map((bytes) => Buffer.from(bytes).toString('base64')).join();
      const known = verified.get(name) ?? primitives.ed25519Verify(key, message, signature);
      verified.set(name, known);
      return known;
    },
  };
  return async (events: Events): Promise<ReadonlySet<FindingKind>> => {
    const found = new Set<FindingKind>();
    const auditor = new Auditor({
      primitives: cached,
      scratch: memoryScratch<ScratchRow>(),
      onFinding(finding) {
        assertSentences(finding);
        found.add(finding.kind);
      },
    });
    for (const event of events) await auditor.take(event);
    await auditor.finish();
    return found;
  };
}

const isListed = (verdict: FindingKind | Listed): verdict is Listed => verdict in LISTED;

/** The verdict of the table on a change; null: it has no row. */
function expectedOf(kind: string, change: string): FindingKind | Listed | null {
  if (change === 'copied') return 'event_id_repeated';
  if (change === 'created' || change === 'metadata') return 'unsigned';
  const rows = TABLE[kind] ?? [];
  const [member = ''] = change.split(/[.→]/);
  const rowOf = (name: string) => rows.find(([changes]) => changes.split(' ').includes(name));
  const row = rowOf(change) ?? rowOf(member) ?? rowOf('*');
  return row?.[1] ?? null;
}

const it = await record();
const { events } = it.log;
const findingsOf = auditing();

/** Each finding is read alone, in a table or a line of JSON: its text names what it is about. */
function assertSentences({ kind, message }: Finding): void {
  assert.match(message, /^(?!It |Its |They )[A-Z].*[^.]\.$/s, kind);
  assert.doesNotMatch(message, /undefined|\bnull\b|\[object/, kind);
}

test('the record has each event type, and is clean', async () => {
  const types = new Set(events.map(({ type }) => type));
  assert.deepEqual(
    EVENT_TYPES.filter((type) => !types.has(type)),
    [],
  );
  assert.deepEqual([...(await findingsOf(events))], []);
});

test('each change of each event is found as the table states, or listed as undetected', async () => {
  const wrong: string[] = [];
  const used = new Set<string>();
  for (const { name, events: changed } of mutations(events, kinds(events))) {
    const [kind = '', change = ''] = name.split(': ');
    const expected = expectedOf(kind, change);
    const found = await findingsOf(changed);
    used.add(`${kind} ${expected}`);
    const holds = expected !== null && (isListed(expected) ? found.size === 0 : found.has(expected));
    if (!holds)
      wrong.push(`${name}: ${expected ?? 'no row'}, and found is ${[...found].join(', ') || 'nothing'}`);
  }
  assert.deepEqual(wrong, []);
  const rows = Object.entries(TABLE).flatMap(([kind, changes]) =>
    changes.map(([, verdict]) => `${kind} ${verdict}`),
  );
  assert.deepEqual(
    rows.filter((row) => !used.has(row)),
    [],
    'rows that nothing tests',
  );
});

test('two events of different streams that change places are found as stated, or listed as undetected', async () => {
  const wrong: string[] = [];
  const seen = new Set<string>();
  for (const { name, events: changed } of swapsAcrossStreams(events, kinds(events))) {
    const found = await findingsOf(changed);
    const expected = SWAPS[name];
    seen.add(name);
    if (expected === undefined ? found.size > 0 : !found.has(expected))
      wrong.push(`${name}: ${expected ?? 'order'}, and found is ${[...found].join(', ') || 'nothing'}`);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    Object.keys(SWAPS).filter((name) => !seen.has(name)),
    [],
  );
});

test('the guide lists what is not detected, and nothing that the table does not have', () => {
  const guide = readFileSync(`${rootPath}/src/verify/README.md`, 'utf8');
  const list = /What no audit can detect:\n\n((?:- .*\n)+)/.exec(guide)?.[1]?.trimEnd().split('\n') ?? [];
  const sentences = Object.values(LISTED);
  assert.deepEqual(
    list.map((line) => sentences.find((sentence) => line.startsWith(`- ${sentence}`)) ?? line),
    sentences,
  );
  const verdicts = new Set(Object.values(TABLE).flatMap((rows) => rows.map(([, verdict]) => verdict)));
  const untested = (Object.keys(LISTED) as Listed[]).filter((name) => !verdicts.has(name));
  // No record shows these two; `order` is the verdict of swaps.
  assert.deepEqual(untested, ['outcome', 'others', 'order']);
});
