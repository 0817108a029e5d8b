// Comparisons with the chain in an audit: an honest record is clean, also after a reorganisation; one that was edited is
// found by the record itself or, where it was edited consistently, by the chain.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { event } from '#src/domain/events.ts';
import { type ChainAudit, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { auditAgainstChain } from '#src/usecases/audit/audit-against-chain.ts';
import { Auditor } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { edited, nth, renumbered, without } from '#test/support/given/audited-record.ts';
import {
  hex,
  paymentMissing,
  paymentRejected,
  settlementCorrected,
} from '#test/support/given/given-events.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';
import { made, type ReconciledWorld, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const STRANGER = '0x4444444444444444444444444444444444444444';

/** Rounds with a charge that was found, one that was known and a stranger's transfer, and two more rounds. */
async function record(): Promise<ReconciledWorld> {
  const it = reconciledWorld();
  await made(it.round());
  const [found, known] = [await it.payment('1', 'unknown'), await it.payment('2', 'settled')];
  it.chain.pay(found.reserved);
  it.chain.pay(known.reserved);
  it.chain.transfer(STRANGER, 5n);
  it.pass(60);
  await made(it.round());
  it.pass(60);
  await made(it.round());
  it.chain.transfer(STRANGER, 6n);
  it.pass(60);
  await made(it.round());
  return it;
}

const chainOf = (it: ReconciledWorld, changes: Partial<ChainAudit> = {}): ChainAudit => ({
  network: async () => 'eip155:8453',
  scanOf: () => it.chain.scan,
  transfersIn: async () => null,
  lookUp: (payment) => it.chain.lookUp(payment),
  ...changes,
});

async function audit(events: readonly RecordedEvent[], chain: ChainAudit | null = null) {
  const findings: Finding[] = [];
  const onFinding = (finding: Finding) => findings.push(finding);
  const scratch = sqliteScratch<ScratchRow>(undefined, { changes: 8, characters: 4096 });
  const auditor = new Auditor({ primitives, scratch, onFinding });
  try {
    for (const event of events) await auditor.take(event);
    const summary = await auditor.finish();
    const options = { record: auditor.stated, onFinding, onChecked: () => undefined };
    const checked = chain === null ? null : await auditAgainstChain({ ...options, chain });
    return { summary, checked, texts: findings.map(({ kind, revision }) => `${kind} ${revision}`), findings };
  } finally {
    scratch.close();
  }
}

const rounds = ({ log }: ReconciledWorld) => log.events.filter(({ type }) => type === 'ChainReconciled');
const round = (it: ReconciledWorld, n: number) => nth(it.log.events, 'ChainReconciled', n);

describe('an honest record', () => {
  test('is clean, alone and against the chain', async () => {
    const it = await record();
    const { texts, summary, checked } = await audit(it.log.events, chainOf(it));
    assert.deepEqual(texts, []);
    assert.deepEqual([summary.comparisons, summary.refunds], [4, 0]);
    const all = { comparisons: 4, charges: 0, refunds: 0, elsewhere: 0 };
    assert.deepEqual(checked, { network: 'eip155:8453', ...all });
  });

  test('is clean after a reorganisation, and after a comparison that was repeated', async () => {
    const it = await record();
    it.chain.reorganise(Number(round(it, 1).data.toBlock) - 3);
    it.pass(60);
    await made(it.round());
    await made(it.round(1001));
    const { texts, checked } = await audit(it.log.events, chainOf(it));
    assert.deepEqual(texts, []);
    assert.ok(
      checked !== null && checked.comparisons < rounds(it).length,
      'replaced rounds are not on the chain',
    );
  });
});

describe('a record that was edited', () => {
  test('a payment that the log does not have is found in its round', async () => {
    const it = await record();
    const change = { confirmed: [hex('c')], received: '3006', transfers: 2 } as JsonObject;
    const { texts } = await audit(edited(it.log.events, round(it, 3), change));
    assert.deepEqual(texts, ['chain_event_mismatch 3', 'chain_event_mismatch 3', 'books_unbalanced null']);
  });

  test('a round that is dropped is found', async () => {
    const it = await record();
    const dropped = round(it, 2);
    const { texts } = await audit(renumbered(without(it.log.events, (event) => event === dropped)));
    assert.deepEqual(texts, ['chain_event_impossible 2']);
  });

  test('a payment that two rounds confirm is found', async () => {
    const it = await record();
    const { confirmed } = round(it, 1).data;
    const change = { confirmed, received: '6006', transfers: 3 } as JsonObject;
    const { texts } = await audit(edited(it.log.events, round(it, 3), change));
    assert.deepEqual(texts, ['chain_event_mismatch 3', 'chain_event_mismatch 3', 'books_unbalanced null']);
  });

  test('a charge that is dropped is found: more was received than the books have', async () => {
    const it = await record();
    const settled = nth(it.log.events, 'PaymentSettled', 0);
    const { texts } = await audit(renumbered(without(it.log.events, (event) => event === settled)));
    assert.ok(texts.includes('chain_event_mismatch 1'), texts.join());
    assert.ok(texts.includes('books_unbalanced null'), texts.join());
  });

  test('a missing charge that was none, and one that is taken back although it bought a call, are found', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'unknown');
    await it.append(payment.stream, paymentMissing({ jobId: payment.jobId }));
    assert.deepEqual((await audit(it.log.events)).texts, ['payment_event_impossible 2']);

    const other = reconciledWorld();
    const served = await other.payment('1', 'served');
    const { jobId } = served;
    await other.append(served.stream, paymentMissing({ jobId }), paymentRejected({ jobId }));
    const { texts } = await audit(other.log.events);
    assert.ok(texts.includes('payment_event_impossible 3'), texts.join());
  });
});

test('a charge whose transaction was corrected is noted; one that was not is found against the chain', async () => {
  const it = reconciledWorld();
  await made(it.round());
  const charged = await it.payment('1', 'settled');
  it.chain.pay(charged.reserved, `0x${hex('c')}`);
  it.pass(60);
  await made(it.round());
  const honest = await audit(it.log.events, chainOf(it));
  assert.deepEqual([honest.texts, honest.summary.notes.correctedCharges], [[], 1]);
  const kept = renumbered(without(it.log.events, ({ type }) => type === 'SettlementCorrected'));
  assert.deepEqual((await audit(kept)).texts, []);
  const { texts, findings } = await audit(kept, chainOf(it));
  assert.deepEqual(texts, ['charge_transaction_mismatch 1']);
  assert.match(
    findings[0]?.message ?? '',
    /^The charge of payment-[0-9a-f]+ is recorded with transaction 0x/,
  );
});

/** Runs on one state, each of which continues the one before. */
function runs() {
  const scratch = memoryScratch<ScratchRow>();
  return async (events: readonly RecordedEvent[], chain: ChainAudit) => {
    const findings: string[] = [];
    const onFinding = ({ kind, revision }: Finding) => findings.push(`${kind} ${revision}`);
    const state = { release: '1', save: () => undefined };
    const auditor = new Auditor({ primitives, scratch, onFinding, state });
    for (const event of events.slice(auditor.kept.saved?.order.events ?? 0)) await auditor.take(event);
    await auditor.finish();
    const record = auditor.stated;
    const checked = await auditAgainstChain({ record, chain, onFinding, onChecked: () => undefined });
    auditor.kept.save();
    return { findings, comparisons: checked.comparisons, charges: checked.charges };
  };
}

describe('in runs that continue each other', () => {
  test('rounds that the chain has are compared once; one that it does not have, in each run', async () => {
    const it = await record();
    const run = runs();
    const wrong = edited(it.log.events, round(it, 2), { blockHash: `0x${hex('9')}` });
    const found = ['chain_block_mismatch 2'];
    assert.deepEqual(await run(wrong, chainOf(it)), { findings: found, comparisons: 4, charges: 0 });
    assert.deepEqual(await run(wrong, chainOf(it)), { findings: found, comparisons: 1, charges: 0 });
    it.pass(60);
    await made(it.round());
    const grown = [...wrong, ...it.log.events.slice(wrong.length)];
    assert.deepEqual(await run(grown, chainOf(it)), { findings: found, comparisons: 2, charges: 0 });
  });

  test('a charge is compared until the chain has it; a correction of it is compared again', async () => {
    const it = reconciledWorld();
    await made(it.round());
    const charged = await it.payment('1', 'settled');
    const run = runs();
    assert.deepEqual((await run(it.log.events, chainOf(it))).charges, 1);
    assert.deepEqual((await run(it.log.events, chainOf(it))).charges, 1, 'the chain does not have it yet');
    it.chain.pay(charged.reserved);
    it.pass(60);
    assert.deepEqual((await run(it.log.events, chainOf(it))).charges, 1);
    assert.deepEqual((await run(it.log.events, chainOf(it))).charges, 0);
    await made(it.round());
    assert.deepEqual(await run(it.log.events, chainOf(it)), { findings: [], comparisons: 1, charges: 0 });
    const settled = it.log.events.findLast(({ type }) => type === 'PaymentSettled');
    const recorded = String(settled?.data.transaction);
    await it.append(charged.stream, settlementCorrected({ jobId: charged.jobId, recorded }));
    const last = await run(it.log.events, chainOf(it));
    const whole = await audit(it.log.events, chainOf(it));
    assert.deepEqual(last.findings, whole.texts);
    assert.ok(whole.texts.length > 0);
  });
});

describe('against the chain', () => {
  test('a transfer that was kept from the books is found', async () => {
    const it = await record();
    const change = { received: '0', transfers: 0, unattributed: [] } as JsonObject;
    const events = edited(it.log.events, round(it, 3), change);
    assert.deepEqual((await audit(events)).texts, []);
    assert.deepEqual((await audit(events, chainOf(it))).texts, ['chain_transfers_mismatch 3']);
  });

  test('a transfer that never was is found', async () => {
    const it = await record();
    const [row] = round(it, 3).data.unattributed as JsonObject[];
    const change = { received: '60', unattributed: [{ ...row, amount: '60' }] } as JsonObject;
    const { texts } = await audit(edited(it.log.events, round(it, 3), change), chainOf(it));
    assert.deepEqual(texts, ['chain_transfers_mismatch 3']);
  });

  test('a block that the chain does not have is found', async () => {
    const it = await record();
    const events = edited(it.log.events, round(it, 2), { blockHash: `0x${hex('9')}` });
    assert.deepEqual((await audit(events, chainOf(it))).texts, ['chain_block_mismatch 2']);
    it.chain.reorganise(Number(round(it, 3).data.toBlock));
    assert.deepEqual((await audit(it.log.events, chainOf(it))).texts, ['chain_block_mismatch 3']);
  });

  test('rounds of another network are not checked, and counted', async () => {
    const it = await record();
    const chain = chainOf(it, { network: async () => 'eip155:1' });
    const { texts, checked } = await audit(it.log.events, chain);
    assert.deepEqual(texts, []);
    assert.deepEqual(checked, {
      network: 'eip155:1',
      comparisons: 0,
      charges: 0,
      refunds: 0,
      elsewhere: 4,
    });
  });

  test('a charge that the chain does not have is found: one that no round has compared, and one that is recorded as missing', async () => {
    const it = reconciledWorld();
    await made(it.round());
    const lost = await it.payment('1', 'settled');
    const there = await it.payment('2', 'settled');
    it.chain.pay(there.reserved);
    const moved = await it.payment('3', 'settled');
    it.chain.pay({ ...moved.reserved, payTo: STRANGER });
    it.pass(60);
    const found = async (events = it.log.events) => {
      const { findings, checked } = await audit(events, chainOf(it));
      return { checked, found: findings.map(({ kind, stream, jobId }) => [kind, stream, jobId]) };
    };
    const notThere = ({ stream, jobId }: typeof lost) => ['charge_not_on_chain', stream, jobId];
    assert.deepEqual((await audit(it.log.events)).texts, []);
    const before = await found();
    assert.deepEqual(before.found, [notThere(lost), notThere(moved)]);
    assert.equal(before.checked?.charges, 3);
    await made(it.round());
    const { summary } = await audit(it.log.events);
    assert.ok(summary.notes.missingPayments > 0);
    const after = await found();
    assert.deepEqual(after.found, [notThere(lost), notThere(moved)]);
    assert.equal(after.checked?.charges, 2, 'the round has compared the other one');
  });

  test('a charge that is younger than the chain can show is no finding; without an answer there is no verdict', async () => {
    const it = reconciledWorld();
    await it.payment('1', 'settled');
    assert.deepEqual((await audit(it.log.events, chainOf(it))).texts, []);
    const silent = chainOf(it, {
      lookUp: async () => {
        throw new ChainUnavailable('timeout');
      },
    });
    await assert.rejects(audit(it.log.events, silent), ChainUnavailable);
  });

  test('a refund is on the chain, or found: nothing, too little, another sender, asset or recipient', async () => {
    const it = reconciledWorld();
    const { stream, jobId, reserved } = await it.payment('1', 'settled');
    const { network, asset, amount, payer, payTo: sender } = reserved;
    const transaction = `0x${hex('e')}`;
    const at = '2026-01-02T03:05:00.000Z';
    await it.append(stream, event('RefundBegun', { jobId, served: false, statement: null, begunAt: at }));
    const refunds = [{ payment: stream, jobId, amount }];
    const transfers = [{ asset, sender, payer, amount, refunds }];
    const claim = { network, transaction, transfers, released: [], claimedAt: at };
    await it.append(`refund-${network}:${transaction}`, event('RefundClaimed', claim));
    const evidence = 'chain' as const;
    const refund = { jobId, network, asset, amount, payer, transaction, evidence, sender, refundedAt: at };
    await it.append(stream, event('PaymentRefunded', refund));
    assert.deepEqual((await audit(it.log.events)).texts, []);

    const moved = { asset, sender, recipient: payer, amount: 3000n };
    for (const [found, expected] of [
      [[moved], []],
      [
        [
          { ...moved, amount: 1000n },
          { ...moved, amount: 2000n },
        ],
        [],
      ],
      [null, ['refund_not_on_chain 0']],
      [[{ ...moved, amount: 2999n }], ['refund_not_on_chain 0']],
      [[{ ...moved, sender: STRANGER }], ['refund_not_on_chain 0']],
      [[{ ...moved, asset: STRANGER }], ['refund_not_on_chain 0']],
      [[{ ...moved, recipient: STRANGER }], ['refund_not_on_chain 0']],
    ] as const) {
      const { texts, checked } = await audit(it.log.events, chainOf(it, { transfersIn: async () => found }));
      assert.deepEqual(texts, expected);
      assert.equal(checked?.refunds, 1);
    }
  });
});
