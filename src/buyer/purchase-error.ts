/** One member of what was received that is not as ordered. `member`: its path, such as `receipt.payment.payer`. */
export type Mismatch = { readonly member: string; readonly expected: string; readonly actual: string };

/** Why a purchase is not the buyer's own verified one, or was not made. The message is one line for a person. */
export class PurchaseError extends Error implements Mismatch {
  readonly member: string;
  readonly expected: string;
  readonly actual: string;
  constructor({ member, expected, actual }: Mismatch) {
    super(`${member}: expected ${expected}, received ${actual}`);
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
