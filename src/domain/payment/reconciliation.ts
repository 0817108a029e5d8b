// The books compared with the chain: what a transfer is to a payment, which charges are missing, and what the rounds of the
// comparison add up to.
import { sha256, toHex, utf8 } from '../encoding.ts';
import { type ChainReconciled, chainAccount, identityText, type Unattributed } from '../events/payment.ts';
import { type EventOf, event, STREAM } from '../events.ts';
import { type ChainFinding, isSurelyOver, type Payment, paymentSettled, reservationIn } from './state.ts';

/** One asset of one payee: what a comparison is about. Addresses in lower case. */
export type ChainAccount = { readonly network: string; readonly asset: string; readonly payee: string };

export const accountKey = (account: ChainAccount): string =>
  `${chainAccount(account)}:${account.asset}`.toLowerCase();

/** `time`: Unix seconds, by the chain's clock. */
export type ChainBlock = { readonly number: number; readonly hash: string; readonly time: number };

/** To the payee. Addresses and hashes in lower case, `amount` in atomic units. */
export type ChainTransfer = {
  readonly transaction: string;
  readonly block: number;
  readonly sender: string;
  readonly amount: bigint;
  /** Of the authorization that moved it; null: it was transferred in another way. */
  readonly nonce: string | null;
};

/** The stream of the payment that an authorization of the sender makes; null: it was transferred in another way. */
export const streamOfTransfer = (account: ChainAccount, { sender, nonce }: ChainTransfer): string | null =>
  nonce === null ? null : streamOfAuthorization(account, { payer: sender, nonce });

/** The stream of the payment that an authorization makes. */
export const streamOfAuthorization = (
  { network, asset }: Pick<ChainAccount, 'network' | 'asset'>,
  { payer, nonce }: { readonly payer: string; readonly nonce: string },
): string => STREAM.payment(toHex(sha256(utf8(identityText({ network, asset, payer, nonce })))));

/** The hash in the name of a payment's stream. */
export const hashOfStream = (stream: string): string => stream.slice(STREAM.payment('').length);

/**
 * What a transfer means for the payment of its authorization. `confirmed`: the books have the charge. `corrects`: they have
 * it with another transaction, and this records the real one. `settles`: they do not have it, and this records it.
 * `unattributed`: it does not pay this payment.
 */
export type TransferVerdict =
  | { readonly kind: 'confirmed' | 'unattributed' }
  | { readonly kind: 'corrects'; readonly event: EventOf<'SettlementCorrected'> }
  | { readonly kind: 'settles'; readonly event: EventOf<'PaymentSettled'> };

export function judgeTransfer(
  payment: Payment,
  { payee }: ChainAccount,
  transfer: ChainTransfer,
  at: string,
): TransferVerdict {
  const reserved = reservationIn(payment);
  if (reserved === null) return { kind: 'unattributed' };
  const { jobId, amount, payTo } = reserved;
  // Two authorizations of a payer can have one nonce: only the recorded one pays for the payment.
  if (BigInt(amount) !== transfer.amount || payTo.toLowerCase() !== payee) return { kind: 'unattributed' };
  if ('settled' in payment && isCharged(payment)) {
    const recorded = payment.settled.transaction;
    const { transaction } = transfer;
    if (recorded?.toLowerCase() === transaction) return { kind: 'confirmed' };
    const facts = { jobId, recorded, transaction, correctedAt: at };
    return { kind: 'corrects', event: event('SettlementCorrected', facts) };
  }
  return { kind: 'settles', event: paymentSettled({ reserved }, transfer.transaction, 'chain', at) };
}

/** The books have the charge, and no comparison found it missing. */
export const isCharged = (payment: Payment): boolean =>
  'settled' in payment && !('missing' in payment && payment.missing !== null);

/** Between the record of a charge and the time of its block: clocks differ, and a facilitator may answer early. */
const MARGIN_SECONDS = 30;

/** `settledAt`: Unix ms, by the clock of the process that recorded the charge. `validBefore`: of its authorization, Unix s. */
export type ChargeTimes = { readonly settledAt: number; readonly validBefore: string };

/**
 * Whether the transfer of a charge must be in the blocks up to this one. No later block than the end of its authorization can
 * have it (EIP-3009), whatever time a wrong clock has recorded.
 */
export const isDue = (charge: ChargeTimes, { time }: Pick<ChainBlock, 'time'>): boolean =>
  charge.settledAt / 1000 + MARGIN_SECONDS <= time || isSurelyOver(charge, time);

/**
 * The charge has no transfer in the blocks up to this one, which must have it, and the chain shows no later one either.
 * null: it shows one, or cannot be queried.
 */
export function missingCharge(
  payment: Payment,
  finding: ChainFinding,
  upTo: Pick<ChainBlock, 'number' | 'time'>,
  at: string,
): EventOf<'PaymentMissing'> | null {
  if (!('settled' in payment) || !isCharged(payment)) return null;
  const { outcome } = finding;
  if (outcome !== 'unused' && outcome !== 'cancelled' && outcome !== 'spent_elsewhere') return null;
  // A node that is behind the compared blocks has not seen the transfer.
  if (finding.outcome === 'unused' && finding.chainTimeSeconds < upTo.time) return null;
  const { jobId } = payment.reserved;
  const { transaction } = payment.settled;
  const facts = { jobId, transaction, finding: outcome, upToBlock: upTo.number, missingAt: at };
  return event('PaymentMissing', facts);
}

/** Rows of one event: more in one block, as a flood of dust, are one row. */
const LISTED_MAX = 200;

/** One row for each transaction and sender, in the order of the chain. */
export function listUnattributed(transfers: readonly ChainTransfer[]): readonly Unattributed[] {
  const rows = new Map<string, Unattributed>();
  for (const { transaction, sender, amount, block } of transfers) {
    const key = `${transaction} ${sender}`;
    const listed = rows.has(key) || rows.size < LISTED_MAX;
    const row = listed ? { transaction, sender, block } : { transaction: null, sender: null, block };
    const name = listed ? key : String(block);
    const before = rows.get(name) ?? { ...row, amount: '0', transfers: 0 };
    const sum = String(BigInt(before.amount) + amount);
    rows.set(name, { ...before, amount: sum, transfers: before.transfers + 1 });
  }
  return [...rows.values()];
}

/** What the rounds that stand say of one account: rounds without a gap, none of them replaced by a later one. */
export type ChainBooks = ChainAccount & {
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly blockHash: string;
  /** RFC 3339. */
  readonly blockTime: string;
  /** Sums in atomic units. */
  readonly received: bigint;
  readonly unattributed: bigint;
};

export const sumOf = (rows: readonly Pick<Unattributed, 'amount'>[]): bigint =>
  rows.reduce((sum, { amount }) => sum + BigInt(amount), 0n);

/** `books`: of the rounds right before it or right after it; null: it is the first. */
export function addRound(books: ChainBooks | null, round: ChainReconciled): ChainBooks {
  const { network, asset, payee, fromBlock, toBlock, blockHash, blockTime } = round;
  const account = { network, asset, payee };
  const [received, unattributed] = [BigInt(round.received), sumOf(round.unattributed)];
  const own = { ...account, fromBlock, toBlock, blockHash, blockTime, received, unattributed };
  if (books === null) return own;
  return {
    ...(toBlock > books.toBlock ? own : books),
    fromBlock: Math.min(fromBlock, books.fromBlock),
    received: books.received + received,
    unattributed: books.unattributed + unattributed,
  };
}
