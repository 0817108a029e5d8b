// Receipts that compromised keys revoke: they may have verified when they were recorded, and no longer do.
import type { KeyRecord } from './keys.ts';

export type Revocation = {
  readonly keyId: string;
  /** Unix seconds: no receipt that the key issued at or after this verifies. */
  readonly from: number;
};

/**
 * Empty in normal operation. A retired key revokes nothing: its retirement is announced minutes before it takes effect, so
 * no receipt recorded before the announcement was issued after it.
 */
export function revocations(keys: readonly KeyRecord[]): readonly Revocation[] {
  return keys.flatMap(({ keyId, purpose, notAfter, compromisedAt }) =>
    purpose !== 'receipt' || compromisedAt === null
      ? []
      : [{ keyId, from: notAfter === null ? compromisedAt : Math.min(compromisedAt, notAfter + 1) }],
  );
}
