// What a receipt says, in the words in which people are shown it.
import type { ReceiptPayload } from './payload.ts';

export type Statement = {
  readonly answer: string;
  readonly payment: string;
};

/** To be shown only where the receipt verifies: unsigned words beside a failure would be read as facts. */
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
