// What an audit finds, and what it does not: each event of a real record is changed member by member, dropped, doubled and
// swapped. Each class of changes is found, with the finding that the table names, or a sentence of the guide lists it as
// undetected. A new event type or member needs a row; a listed class that is found by now needs another sentence.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Finding, FindingKind } from '#src/domain/audit/finding.ts';
import { EVENT_TYPES } from '#src/domain/events.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { Auditor } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { kinds, mutableRecord, rememberedPrimitives } from '#test/support/given/mutable-record.ts';
import { mutations, swapsAcrossStreams } from '#test/support/given/mutations.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';
import { rootPath } from '#test/support/process/runtime.ts';

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

/** Each signature is verified once, whatever record it is in. */
function auditing() {
  const cached = rememberedPrimitives();
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

const { events } = (await mutableRecord()).log;
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
