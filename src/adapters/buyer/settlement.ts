// What the relay answers of the payment itself (PAYMENT-RESPONSE): who paid, in which transaction, and its signed word
// that what was paid for was delivered.
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { OFFER_RECEIPT, type SignedReceipt } from '@x402/extensions/offer-receipt';
import type { ReadHeader } from './offer.ts';
import { type SignedBy, verifiedPaymentReceipt } from './signed.ts';

export type Settlement = {
  readonly success: boolean;
  readonly network: string;
  readonly payer: string | null;
  /** null: on the chain, and nobody could name it. */
  readonly transaction: string | null;
  /** The signed payment receipt; null where none came. */
  readonly receipt: SignedReceipt | null;
};

/** null: no readable PAYMENT-RESPONSE. */
export function readSettlement(header: ReadHeader): Settlement | null {
  try {
    const { success, network, payer, transaction, extensions } = new x402HTTPClient(
      new x402Client(),
    ).getPaymentSettleResponse(header);
    const held = extensions?.[OFFER_RECEIPT] as { info?: { receipt?: SignedReceipt } } | undefined;
    return {
      success,
      network,
      payer: payer ?? null,
      transaction: transaction === '' ? null : transaction,
      receipt: held?.info?.receipt ?? null,
    };
  } catch {
    return null;
  }
}

export type PaidFor = {
  readonly resourceUrl: string;
  readonly network: string;
  /** Lower case. */
  readonly payer: string;
  /** Unix ms, of the job's completion. */
  readonly completedMs: number;
};

/** null: the relay signed that this payer's payment bought this resource; else what is wrong, for a person. */
export async function paymentReceiptProblem(
  { receipt, transaction }: Settlement,
  { resourceUrl, network, payer, completedMs }: PaidFor,
  by: SignedBy,
): Promise<string | null> {
  if (receipt === null) return 'there is none';
  const verified = await verifiedPaymentReceipt(receipt, by, completedMs);
  if ('problem' in verified) return verified.problem;
  const signed = verified.payload;
  const differs = [
    ['resource', signed.resourceUrl, resourceUrl],
    ['network', signed.network, network],
    ['payer', String(signed.payer).toLowerCase(), payer],
    ['transaction', signed.transaction || null, transaction],
  ].flatMap(([name, says, is]) => (says === is ? [] : [name]));
  return differs.length === 0 ? null : `it names another ${differs.join(', ')}`;
}
