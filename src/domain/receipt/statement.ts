// A receipt's answer and payment as text for people.
import type { ReceiptPayload } from './payload.ts';

export type Statement = {
  readonly answer: string;
  readonly payment: string;
};

/** Show it only if the receipt verifies: readers would take unsigned text beside a failure for facts. */
export function statementOf({ mode, outcome, payment }: ReceiptPayload): Statement {
  const { responseStatus, errorCategory } = outcome;
  return {
    answer: responseStatus === null ? (errorCategory ?? 'no answer') : `answer ${responseStatus}`,
    payment:
      payment === null
        ? `none (${mode} mode)`
        : `${payment.amount} of ${payment.asset} on ${payment.network}`,
  };
}
