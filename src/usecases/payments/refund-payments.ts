// Records that one transfer refunded one or several payments of one payer.
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { EventOf } from '#src/domain/events.ts';
import type { PaymentReserved } from '#src/domain/payment/events.ts';
import {
  type FoundTransfer,
  judgeTransfer,
  type RefundRefusal,
  refundGroup,
  refundPayment,
  type TransferRefusal,
} from '#src/domain/payment/refund.ts';
import { type EventLog, WrongExpectedVersion } from '#src/ports/event-log.ts';
import {
  appendUntilKnown,
  envelope,
  type JournalDeps,
  loadJob,
  loadPayment,
} from '#src/usecases/event-streams.ts';

/** A transaction that the operator claims to refund these charges to their payer. */
export type ClaimedTransfer = Pick<PaymentReserved, 'network' | 'asset' | 'payer'> & {
  readonly transaction: string;
  /** The known transactions of the charges. */
  readonly charges: readonly string[];
  /** Unix seconds; no charge is earlier. */
  readonly notBefore: number;
};

export type RefundRequest = {
  /** Names of the payments' streams. */
  readonly ids: readonly string[];
  /** `0x` and 64 hex digits, lower case. */
  readonly transaction: string;
  /** null: the transfer is recorded as stated by the operator, unverified. */
  readonly findTransfer: ((transfer: ClaimedTransfer) => Promise<FoundTransfer>) | null;
};

type RefundedRow = {
  readonly id: string;
  readonly jobId: string;
  readonly payer: string;
  readonly amount: string;
  /** false: an earlier call had recorded it. */
  readonly recorded: boolean;
};

export type Refunded =
  | { readonly outcome: 'refunded'; readonly rows: readonly RefundedRow[] }
  | {
      readonly outcome: 'refused';
      readonly reason: RefundRefusal | TransferRefusal | 'several_payers' | 'transfer_used';
      /** The refused payment; null: the transfer is refused. */
      readonly id: string | null;
    };

type Payment = {
  readonly id: string;
  readonly expected: bigint | 'no_stream';
  readonly reserved: PaymentReserved;
  readonly charge: string | null;
  /** null: this transaction is recorded already. */
  readonly event: EventOf<'PaymentRefunded'> | null;
};

/**
 * All payments are checked before the first is recorded. Repeating the call after an interruption records the rest. A
 * payment whose stream changes meanwhile is read again.
 */
export async function refundPayments(deps: JournalDeps, request: RefundRequest): Promise<Refunded> {
  const { transaction, findTransfer } = request;
  const ids = [...new Set(request.ids)];
  const refused = (reason: Extract<Refunded, { outcome: 'refused' }>['reason'], id: string | null = null) =>
    ({ outcome: 'refused', reason, id }) as const;
  for (;;) {
    const payments: Payment[] = [];
    for (const id of ids) {
      const read = await readPayment(deps, id, request);
      if ('refused' in read) return refused(read.refused, id);
      payments.push(read);
    }
    const [first] = payments;
    if (first === undefined) return { outcome: 'refunded', rows: [] };
    const other = payments.find(({ reserved }) => refundGroup(reserved) !== refundGroup(first.reserved));
    if (other !== undefined) return refused('several_payers', other.id);
    const user = await otherRefundBy(deps.log, transaction, ids);
    if (user !== null) return refused('transfer_used', user);
    if (findTransfer !== null) {
      const { network, asset, payer } = first.reserved;
      const charges = payments.flatMap(({ charge }) => (charge === null ? [] : [charge]));
      const notBefore = Math.max(...payments.map(({ reserved }) => Date.parse(reserved.reservedAt))) / 1000;
      const found = await findTransfer({ network, asset, payer, transaction, charges, notBefore });
      const total = payments.reduce((sum, { reserved }) => sum + BigInt(reserved.amount), 0n);
      const problem = judgeTransfer(found, total);
      if (problem !== null) return refused(problem);
    }
    const rows: RefundedRow[] = [];
    if (await recordAll(deps, payments, rows)) return { outcome: 'refunded', rows };
  }
}

async function readPayment(
  deps: JournalDeps,
  id: string,
  { transaction, findTransfer }: RefundRequest,
): Promise<Payment | { readonly refused: RefundRefusal }> {
  const { state, expected } = await loadPayment(deps.log, id);
  if (state.status === 'refunded' && state.refunded.transaction === transaction) {
    const { reserved, settled } = state;
    return { id, expected, reserved, charge: settled.transaction, event: null };
  }
  const job = state.status === 'settled' ? await loadJob(deps.log, state.reserved.jobId) : null;
  const decided = refundPayment(state, job?.state.status ?? 'absent', {
    transaction,
    evidence: findTransfer === null ? 'operator' : 'chain',
    at: new Date(deps.clock.now()).toISOString(),
  });
  if ('refused' in decided) return decided;
  if (state.status !== 'settled') return { refused: 'not_charged' };
  return { id, expected, reserved: state.reserved, charge: state.settled.transaction, event: decided };
}

/** false: another process changed a payment; earlier records remain. */
async function recordAll(
  deps: JournalDeps,
  payments: readonly Payment[],
  rows: RefundedRow[],
): Promise<boolean> {
  for (const { id, expected, reserved, event } of payments) {
    const { jobId, payer, amount } = reserved;
    try {
      if (event !== null) await appendUntilKnown(deps, id, expected, envelope(deps, [event], jobId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) return false;
      throw error;
    }
    rows.push({ id, jobId, payer, amount, recorded: event !== null });
  }
  return true;
}

const PAGE = 512;

/** The stream of another payment that this transaction has refunded; null if there is none. */
async function otherRefundBy(
  log: EventLog,
  transaction: string,
  ids: readonly string[],
): Promise<string | null> {
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types: ['PaymentRefunded'] });
    for (const recorded of page) {
      const event = decodeEvent(recorded);
      if (event?.type === 'PaymentRefunded' && event.data.transaction === transaction) {
        if (!ids.includes(recorded.stream)) return recorded.stream;
      }
    }
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return null;
  }
}
