// Compromised keys: what they signed may have verified when it was recorded, and counts no more from a day on.
import type { KeyRecord } from './keys.ts';

export type Undoing = {
  readonly keyId: string;
  /** Unix seconds: no receipt that the key issued at or after this verifies. */
  readonly from: number;
};

/**
 * None in normal operation. A key that merely retires undoes nothing: it is told minutes before, so nothing that is
 * recorded by then was issued later.
 */
export function undoings(keys: readonly KeyRecord[]): readonly Undoing[] {
  return keys.flatMap(({ keyId, purpose, notAfter, compromisedAt }) =>
    purpose !== 'receipt' || compromisedAt === null
      ? []
      : [{ keyId, from: notAfter === null ? compromisedAt : Math.min(compromisedAt, notAfter + 1) }],
  );
}
