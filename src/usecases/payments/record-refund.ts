// Records that a transfer refunded a payment.
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { PaymentReserved } from '#src/domain/payment/events.ts';
import {
  type FoundTransfer,
  judgeTransfer,
  type RefundRefusal,
  refundPayment,
  type TransferRefusal,
} from '#src/domain/payment/refund.ts';
import { type EventLog, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendPayment, type JournalDeps, loadJob, loadPayment } from '#src/usecases/event-streams.ts';

/** What is looked up on the chain. */
export type ClaimedTransfer = Pick<PaymentReserved, 'network' | 'asset' | 'payer'> & {
  readonly transaction: string;
};

export type RefundRequest = {
  /** Name of the payment's stream. */
  readonly id: string;
  /** `0x` and 64 hex digits, lower case. */
  readonly transaction: string;
  /** null: the transfer is recorded as stated by the operator, unverified. */
  readonly findTransfer: ((transfer: ClaimedTransfer) => Promise<FoundTransfer>) | null;
};

export type Refunded =
  | {
      readonly outcome: 'refunded';
      readonly payment: PaymentReserved;
      /** false: an earlier call had recorded it. */
      readonly recorded: boolean;
    }
  | {
      readonly outcome: 'refused';
      readonly reason: RefundRefusal | TransferRefusal | 'transfer_used';
      /** The payment that is refused, or that the transfer has refunded already. */
      readonly id: string;
    };

/** A payment whose stream changes meanwhile is read again. */
export async function recordRefund(deps: JournalDeps, request: RefundRequest): Promise<Refunded> {
  const { id, transaction, findTransfer } = request;
  const refused = (reason: Extract<Refunded, { outcome: 'refused' }>['reason'], of = id) =>
    ({ outcome: 'refused', reason, id: of }) as const;
  for (;;) {
    const view = await loadPayment(deps.log, id);
    const { state } = view;
    if (state.status === 'refunded' && state.refunded.transaction === transaction)
      return { outcome: 'refunded', payment: state.reserved, recorded: false };
    const reserved = state.status === 'settled' ? state.reserved : null;
    const job = reserved === null ? 'absent' : (await loadJob(deps.log, reserved.jobId)).state.status;
    const evidence = findTransfer === null ? 'operator' : 'chain';
    const at = new Date(deps.clock.now()).toISOString();
    const event = refundPayment(state, job, { transaction, evidence, at });
    if ('refused' in event) return refused(event.refused);
    if (reserved === null) return refused('not_charged');
    const other = await refundedBy(deps.log, transaction);
    if (other !== null) return refused('transfer_used', other);
    if (findTransfer !== null) {
      const { network, asset, payer } = reserved;
      const found = await findTransfer({ network, asset, payer, transaction });
      const problem = judgeTransfer(found, reserved);
      if (problem !== null) return refused(problem);
    }
    try {
      await appendPayment(deps, view, event);
      return { outcome: 'refunded', payment: reserved, recorded: true };
    } catch (error) {
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
  }
}

const PAGE = 512;

/** The stream of the payment that this transaction has refunded; null if there is none. */
async function refundedBy(log: EventLog, transaction: string): Promise<string | null> {
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types: ['PaymentRefunded'] });
    const used = page.find((recorded) => {
      const event = decodeEvent(recorded);
      return event?.type === 'PaymentRefunded' && event.data.transaction === transaction;
    });
    if (used !== undefined) return used.stream;
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return null;
  }
}
