// A log of payments beside a chain, for the tests of the reconciliation: payments in any state, what the chain has of them,
// and rounds of one or more processes.

import assert from 'node:assert/strict';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { identityText, type PaymentReserved } from '#src/domain/events/payment.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { STREAM } from '#src/domain/events.ts';
import { accountKey } from '#src/domain/payment/reconciliation.ts';
import type { PaymentRow } from '#src/usecases/payments/list-payments.ts';
import { listAllPayments } from '#src/usecases/payments/list-payments.ts';
import { ledgerReader, readLedger } from '#src/usecases/payments/read-ledger.ts';
import { openTurns } from '#src/usecases/reconciliation/judge-open.ts';
import { noBalances } from '#src/usecases/reconciliation/read-blocks.ts';
import {
  type ReconcileDeps,
  type Round,
  reconcileChain,
} from '#src/usecases/reconciliation/reconcile-chain.ts';
import { ACCOUNT, fakeChain, transactionOf } from '#test/support/chain/fakes-chain.ts';
import { balancePayments, listOpenPayments } from '#test/support/given/books.ts';
import {
  at,
  jobCompleted,
  jobStarted,
  paymentReserved,
  paymentSettled,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { faultyLog } from '#test/support/log/fakes-log.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { Random } from '#test/support/world/random.ts';
import { collectingLogger, manualClock } from './fakes.ts';
import { given, typesIn } from './fakes-world.ts';

export type ReconciledWorld = ReturnType<typeof reconciledWorld>;

/** One payment and its job, named after `name`. */
export type Sample = { readonly stream: string; readonly jobId: string; readonly reserved: PaymentReserved };

export const NEVER = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };

export function reconciledWorld() {
  const chain = fakeChain();
  const clock = manualClock();
  const shared = memoryLog({ now: clock.now });
  let processes = 0;

  function openProcess() {
    const log = faultyLog([], shared.again());
    const logger = collectingLogger();
    const ledger = ledgerReader(log);
    const deps: ReconcileDeps = {
      log,
      ledger,
      clock,
      entropy: new Random(++processes),
      logger,
      scan: chain.scan,
      lookUp: chain.lookUp,
    };
    const turns = openTurns();
    const balances = noBalances();
    const round = (from: number | null = null): Promise<Round> =>
      reconcileChain(deps, { account: ACCOUNT, from, signal: NEVER, turns, balances });
    return { log, logger, deps, round, ledger };
  }
  const one = openProcess();
  const it = { log: one.log };
  const samples = new Map<string, Sample>();

  /** The call of a charged payment is made. */
  async function serve(name: string): Promise<void> {
    const { stream, jobId, reserved } = samples.get(name) ?? assert.fail(name);
    const now = (ms: number) => at(clock.now() - T0 + ms);
    const { scheme, network, asset, amount, payTo, payer, payloadHash } = reserved;
    const payment = {
      scheme,
      network,
      asset,
      amount,
      payTo,
      payer,
      payloadHash,
      transaction: transactionOf(reserved),
    };
    const started = jobStarted({ jobId, mode: 'x402', payment, paymentStream: stream, startedAt: now(6) });
    await given(it, `job-${jobId}`, started, jobCompleted({ jobId, completedAt: now(9) }));
  }

  return {
    ...one,
    chain,
    clock,
    openProcess,
    serve,
    /** Another process with empty memory. */
    restart: () => openProcess(),
    /** Time passes, by both clocks. */
    pass(seconds: number): void {
      clock.advance(seconds * 1000);
      chain.mineUntil((clock.now() - T0) / 1000);
    },
    /** `state`: how far the books have come. */
    async payment(
      name: string,
      state: 'reserved' | 'unknown' | 'settled' | 'served' = 'unknown',
      changes: Partial<PaymentReserved> = {},
    ): Promise<Sample> {
      const seconds = (clock.now() - T0) / 1000;
      const now = (ms: number) => at(seconds * 1000 + ms);
      const jobId = `job_${name}`;
      const nonce = `0x${name.padStart(64, '0')}`;
      const { asset } = ACCOUNT;
      const validBefore = String(Math.floor(T0 / 1000 + seconds + 120));
      const { data: reserved } = paymentReserved({
        jobId,
        asset,
        nonce,
        validBefore,
        reservedAt: now(0),
        ...changes,
      });
      const stream = STREAM.payment(toHex(sha256(utf8(identityText(reserved)))));
      const transaction = transactionOf(reserved);
      const { data: settled } = paymentSettled({ jobId, transaction, settledAt: now(5) });
      const events: DomainEvent[] = [{ type: 'PaymentReserved', data: reserved }];
      if (state === 'unknown') events.push(settlementUnknown({ jobId, unknownAt: now(5) }));
      if (state === 'settled' || state === 'served') events.push({ type: 'PaymentSettled', data: settled });
      await given(it, stream, ...events);
      samples.set(name, { stream, jobId, reserved });
      if (state === 'served') await serve(name);
      return { stream, jobId, reserved };
    },
    append: (stream: string, ...events: readonly DomainEvent[]) => given(it, stream, ...events),
    types: ({ stream }: Pick<Sample, 'stream'>) => typesIn(it, stream),
    async states(): Promise<Record<string, string>> {
      const rows = await listOpenPayments({ log: one.log, clock });
      return Object.fromEntries(rows.map(({ jobId, state }) => [jobId.slice('job_'.length), state]));
    },
    /** Every payment, as it is listed. */
    async all() {
      const rows: PaymentRow[] = [];
      for await (const row of listAllPayments({ log: one.log, clock })) rows.push(row);
      return rows;
    },
    async balance() {
      const [row, ...others] = await balancePayments(one.log);
      assert.deepEqual(others, []);
      assert.ok(row);
      const { network, asset, ...sums } = row;
      return sums;
    },
    async compared() {
      const { comparisons } = await readLedger(one.log);
      return comparisons.get(accountKey(ACCOUNT)) ?? null;
    },
  };
}

/** The round was made. */
export async function made(round: Promise<Round>) {
  const result = await round;
  assert.ok(result.kind === 'reconciled', result.kind);
  return result;
}
