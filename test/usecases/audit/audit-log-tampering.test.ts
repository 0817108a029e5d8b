// What was done to a record is found and named: in jobs, receipts, payments, claims, decisions, and in the order of it all.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FindingKind } from '#src/domain/audit/finding.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import {
  anyHash,
  audit,
  edited,
  findingTexts,
  givenRecord,
  nth,
  type Record,
  renumbered,
  resigned,
  without,
} from '#test/support/given/audited-record.ts';
import { execute } from '#test/support/given/given-call.ts';
import { decided, guided } from '#test/support/given/given-decision.ts';
import { keyReleased, OTHER_JOB_ID } from '#test/support/given/given-events.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';

/** No transparency log: what is found is found without it. Jobs 0 and 1 are paid, 2 is guided, 3 was retried. */
async function honest(): Promise<Record> {
  const it = await givenRecord({ log: false });
  await it.paid();
  await it.paid();
  const { decision } = await decided(it.it);
  await guided(it.it, decision.decisionId, { presented: otherPayment('b1') });
  it.outbound.script(failing(), succeeding());
  await letPass(it.clock, it.paid({ request: { retry: { attempts: 2, backoffMs: 0 } } }));
  assert.deepEqual((await audit(it.log.events)).findings, []);
  return it;
}

type Events = readonly RecordedEvent[];
type Change = (events: Events, it: Record) => Events | Promise<Events>;

const it = await honest();
const { events } = it.log;
const of = (type: string, n = 0) => nth(events, type, n);
const jobStream = (n: number) => of('JobStarted', n).stream;

async function kinds(changed: Events): Promise<readonly FindingKind[]> {
  return (await audit(changed)).findings.map(({ kind }) => kind);
}

function finds(title: string, change: Change, expected: readonly string[]): void {
  test(title, async () => assert.deepEqual(findingTexts(await audit(await change(events, it))), expected));
}

/** An event in the place of another. */
const replaced = (which: RecordedEvent, ...by: readonly RecordedEvent[]) =>
  events.flatMap((event) => (event === which ? by : [event]));
const swapped = (a: RecordedEvent, b: RecordedEvent): Events =>
  events.map((event) => (event === a ? b : event === b ? a : event));
const jobOf = (n: number) => String(of('JobStarted', n).data.jobId);

describe('the order of the record', () => {
  finds(
    'an event that is dropped leaves a hole in positions and in its stream',
    (all) => without(all, (event) => event === of('AttemptMade')),
    [
      `position_gap ${jobStream(0)} 2`,
      `revision_gap ${jobStream(0)} 2`,
      `job_event_impossible ${jobStream(0)} 2`,
      `receipt_chain_mismatch ${jobStream(0)} 3`,
      `receipt_content_mismatch ${jobStream(0)} 3`,
    ],
  );
  finds('the last events that are cut leave a job open that is completed', (all) => all.slice(0, -1), [
    `receipt_missing ${jobStream(3)} 3`,
  ]);
  test('two events that are swapped are out of order in both', async () => {
    const found = await kinds(swapped(of('AttemptMade'), of('JobCompleted')));
    assert.deepEqual(
      found.filter((kind) => kind.startsWith('position_') || kind.startsWith('revision_')),
      ['position_gap', 'revision_gap', 'position_order', 'revision_repeated'],
    );
  });
  test('an event whose revision is too great hides nothing of its stream: the others are judged', async () => {
    const first = of('JobStarted');
    const found = await kinds(replaced(first, { ...first, revision: 7n }));
    assert.deepEqual([...new Set(found)].sort(), [
      'receipt_chain_mismatch',
      'revision_gap',
      'revision_repeated',
    ]);
  });
  finds(
    'an event that is doubled is there twice',
    () => replaced(of('JobStarted'), of('JobStarted'), of('JobStarted')),
    [
      `position_order ${jobStream(0)} 0`,
      `revision_repeated ${jobStream(0)} 0`,
      `job_event_impossible ${jobStream(0)} 0`,
      `receipt_chain_mismatch ${jobStream(0)} 3`,
      `event_id_repeated ${jobStream(0)} 0`,
    ],
  );
  test('two events of one id are found, wherever they are, also if positions and revisions fit', async () => {
    const twice = renumbered(
      replaced(of('DecisionRecorded'), of('DecisionRecorded'), of('DecisionRecorded')),
    );
    assert.ok((await kinds(twice)).includes('event_id_repeated'));
    const { id } = of('JobStarted');
    const borrowed = replaced(of('DecisionRecorded'), { ...of('DecisionRecorded'), id });
    assert.deepEqual(await kinds(borrowed), ['event_id_repeated']);
  });
  for (const [what, change] of [
    ['unknown type without a version', { type: 'JobPaused', data: { jobId: 'job_1' } }],
    ['a version that no release has', { data: { ...of('DecisionRecorded').data, v: 0 } }],
    ['other shape', { data: { ...of('DecisionRecorded').data, confidence: 'none' } }],
  ] as const) {
    finds(
      `an event of ${what} is named`,
      () => replaced(of('DecisionRecorded'), { ...of('DecisionRecorded'), ...change }),
      [`event_unreadable ${of('DecisionRecorded').stream} 0`, `decision_missing ${jobStream(2)} 0`],
    );
  }
  for (const [what, change] of [
    ['an unknown type', { type: 'JobPaused' }],
    ['a higher version', { data: { ...of('DecisionRecorded').data, v: 99 } }],
  ] as const)
    finds(
      `${what} is of a newer release: one finding, and none that only follows from it`,
      () => replaced(of('DecisionRecorded'), { ...of('DecisionRecorded'), ...change }),
      [`event_of_newer_release ${of('DecisionRecorded').stream} 0`],
    );
  const continued = (all: Events) =>
    all.map((event) =>
      event.position < of('JobStarted', 2).position ? event : { ...event, data: { ...event.data, v: 99 } },
    );
  finds(
    'a record that a newer release has continued: one finding, however many its events and their types',
    () => continued(events),
    [`event_of_newer_release ${jobStream(2)} 0`],
  );
  finds('what was done to the record before a newer release has continued it is found too', () => {
    const decision = of('DecisionRecorded');
    return continued(replaced(decision, { ...decision, data: { ...decision.data, confidence: 'none' } }));
  }, [`event_unreadable ${of('DecisionRecorded').stream} 0`, `event_of_newer_release ${jobStream(2)} 0`]);
  finds(
    'a name that no log can hold is named',
    () => replaced(of('DecisionRecorded'), { ...of('DecisionRecorded'), stream: 'decision-\ud800' }),
    ['event_unreadable decision-\ud800 0', `decision_missing ${jobStream(2)} 0`],
  );
});

describe('receipts', () => {
  const receipt = () => of('ReceiptSigned');
  test('a receipt in the place of another names neither its job nor its history', async () => {
    const { jws = null, receiptId = null } = of('ReceiptSigned', 1).data;
    const found = await kinds(edited(events, receipt(), { jws, receiptId }));
    for (const kind of ['receipt_content_mismatch', 'receipt_chain_mismatch', 'receipt_id_repeated'] as const)
      assert.ok(found.includes(kind), kind);
  });
  finds(
    'a receipt that cannot be read is named, and compared with nothing',
    () => edited(events, receipt(), { jws: 'a.b.c' }),
    [`receipt_unreadable ${jobStream(0)} 3`],
  );
  test('a receipt that another key signed is named', async () => {
    const key = testKey();
    const changed = await resigned(events, receipt(), key, () => ({}));
    const place = `${jobStream(0)} 3`;
    assert.deepEqual(findingTexts(await audit(changed)), [
      `receipt_signature_invalid ${place}`,
      `receipt_key_invalid ${place}`,
    ]);
  });
  test('a signature that is edited is named', async () => {
    const jws = String(receipt().data.jws);
    const changed = edited(events, receipt(), { jws: `${jws.slice(0, -4)}AAAA` });
    assert.deepEqual(findingTexts(await audit(changed)), [`receipt_signature_invalid ${jobStream(0)} 3`]);
  });
  const request = { method: 'POST', _sd: Array(4).fill('A'.repeat(43)) };
  for (const [what, change, kind = 'receipt_content_mismatch'] of [
    ['receipt id', { receiptId: 'rcpt_0000000000000000000000000c' }],
    ['job', { jobId: OTHER_JOB_ID }],
    ['mode', { mode: 'demo' }],
    ['decision hash', { decisionHash: anyHash }],
    ['decision', { decisionId: 'dec_0000000000000000000000000d' }],
    ['payment', { payment: null }],
    ['attempts', { attempts: [] }],
    ['request', { request: { ...request, method: 'DELETE' } }],
    ['target', { request }],
    ['commitments', { request: { ...request, _sd: [] } }, 'receipt_commitment_missing'],
    ['time', { iat: 1_900_000_000 }, 'receipt_event_mismatch'],
  ] as const) {
    test(`a receipt that states another ${what} is reported, also if it is signed`, async () => {
      const changed = await resigned(events, receipt(), it.key, () => change);
      assert.ok((await kinds(changed)).includes(kind));
    });
  }
  for (const [what, change, kind] of [
    ['bytes', { responseBytes: 3 }, 'receipt_content_mismatch'],
    ['status', { status: 'failed' }, 'receipt_content_mismatch'],
  ] as const) {
    test(`a receipt that states another outcome (${what}) is reported`, async () => {
      const changed = await resigned(events, receipt(), it.key, ({ outcome }) => ({
        outcome: { ...outcome, ...change },
      }));
      assert.deepEqual(await kinds(changed), [kind]);
    });
  }
});

describe('payments', () => {
  test('a transaction that pays for two jobs is named, however it is spelled', async () => {
    const own = await givenRecord({ log: false });
    for (const transaction of ['0xab', '0xcd', '0xAB']) {
      own.payments.scriptSettle({ outcome: 'settled', transaction });
      await own.paid();
    }
    assert.deepEqual(findingTexts(await audit(own.log.events)), [
      `payment_shared ${nth(own.log.events, 'JobStarted', 2).stream} 0`,
    ]);
  });
  test('transactions of two networks are two, whatever their names', async () => {
    const own = await givenRecord({ log: false });
    for (const network of ['eip155:8453', 'eip155:84532']) {
      own.payments.scriptSettle({ outcome: 'settled', transaction: '0xab' });
      await own.paid({ presented: otherPayment('e1', { network }), key: network });
    }
    assert.deepEqual(findingTexts(await audit(own.log.events)), []);
  });
  test('payments with unknown transactions share none', async () => {
    const own = await givenRecord({ log: false });
    for (let n = 0; n < 2; n++) {
      // As recorded before a settlement without its hash was pursued on the chain.
      own.payments.scriptSettle({ outcome: 'settled', transaction: null as unknown as string });
      await own.paid();
    }
    assert.deepEqual(findingTexts(await audit(own.log.events)), []);
  });
  test('a payment that buys two jobs is named', async () => {
    const { payment = null, paymentStream = null } = of('JobStarted').data;
    const found = await audit(edited(events, of('JobStarted', 1), { payment, paymentStream }));
    assert.ok(findingTexts(found).includes(`payment_used_twice ${jobStream(1)} 0`));
  });
});

describe('claims and decisions', () => {
  const claim = of('IdempotencyKeyClaimed').stream;
  test('a key that is taken from a job that still runs is named', async () => {
    const open = events.slice(0, events.indexOf(of('AttemptMade')));
    const release = {
      ...of('IdempotencyKeyClaimed'),
      ...keyReleased({ jobId: jobOf(0), reason: 'retention_over' }),
      id: crypto.randomUUID(),
    };
    assert.deepEqual(findingTexts(await audit(renumbered([...open, release as RecordedEvent]))), [
      `claim_event_impossible ${claim} 1`,
    ]);
  });
  test('a job’s stream that is removed is missed where its key was given up after its end', async () => {
    const own = await givenRecord({ log: false });
    await own.paid({ key: 'one' });
    own.clock.advance(8 * 86_400_000);
    await own.paid({ key: 'one' });
    const stream = nth(own.log.events, 'JobStarted').stream;
    const changed = renumbered(without(own.log.events, (event) => event.stream === stream));
    assert.deepEqual(findingTexts(await audit(changed)), [
      `claim_event_impossible ${nth(own.log.events, 'IdempotencyKeyReleased').stream} 1`,
    ]);
  });
  test('what does not approve cannot have been executed', async () => {
    const own = await givenRecord({ log: false });
    const { decision: recorded } = await decided(own.it, { buyerPolicy: { maxPriceUsd: '0.001' } });
    assert.notEqual(recorded.recommendation, 'pay_and_execute');
    const { createHash } = await import('node:crypto');
    const { canonicalJson } = await import('#src/domain/canonical-json.ts');
    const decisionHash = createHash('sha256')
      .update(canonicalJson(nth(own.log.events, 'DecisionRecorded').data))
      .digest('hex');
    const { decisionId } = recorded;
    await execute(own.it, { decisionId, decisionHash, route: 'execute/guided-webhook' });
    assert.deepEqual(findingTexts(await audit(own.log.events)), [
      `decision_mismatch ${nth(own.log.events, 'JobStarted').stream} 0`,
    ]);
  });
});
