/** One member of what was received that is not as ordered. `member`: its path, such as `receipt.payment.payer`. */
export type Mismatch = { readonly member: string; readonly expected: string; readonly actual: string };

/** The relay's own error: its code and its message. */
export type PurchaseProblem = { readonly code: string; readonly message: string };

/**
 * How a purchase ends that is none. `policy_refused`: before anything was signed for it. `unverified`: an answer that is not
 * proven to be this purchase. `unfinished`: no final answer.
 */
export type PurchaseEnd = {
  readonly outcome: 'policy_refused' | 'relay_refused' | 'unverified' | 'unfinished';
  /** Of a relay that refused. */
  readonly problem: PurchaseProblem | null;
};

/** Why a purchase is not the buyer's own verified one, or was not made. The message is one line for a person. */
export class PurchaseError extends Error implements Mismatch, PurchaseEnd {
  readonly member: string;
  readonly expected: string;
  readonly actual: string;
  readonly outcome: PurchaseEnd['outcome'];
  readonly problem: PurchaseProblem | null;
  constructor({ member, expected, actual }: Mismatch, end: Partial<PurchaseEnd> = {}) {
    super(`${member}: expected ${expected}, received ${actual}`);
    this.outcome = end.outcome ?? 'policy_refused';
    this.problem = end.problem ?? null;
    this.name = 'PurchaseError';
    this.member = member;
    this.expected = expected;
    this.actual = actual;
  }
}

/** Empty if the values are the same JSON; an empty text counts as null. */
export const compare = (member: string, expected: unknown, actual: unknown): readonly Mismatch[] =>
  JSON.stringify(orNull(expected)) === JSON.stringify(orNull(actual))
    ? []
    : [{ member, expected: shownValue(expected), actual: shownValue(actual) }];

const orNull = (value: unknown): unknown => (value === undefined || value === '' ? null : value);

const shownValue = (value: unknown): string => {
  if (orNull(value) === null) return 'none';
  return typeof value === 'string' ? value : JSON.stringify(value);
};
