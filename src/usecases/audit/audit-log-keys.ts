// The signing keys in an audit: as announced so far, and the receipts that a later retirement revokes.

import type { Fault, Place } from '#src/domain/audit/finding.ts';
import { keyFaults } from '#src/domain/audit/judge-keys.ts';
import type { KeyEvent } from '#src/domain/events.ts';
import { evolveKeys, type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

export type KeyAudit = {
  /** `undone`: receipts before it that the key no longer vouches for. */
  take(event: KeyEvent): { readonly faults: readonly Fault[]; readonly undone: Iterable<Place> };
  /** A receipt that was signed by a key which was valid then. `iat`: Unix seconds. */
  issued(keyId: string, iat: number, place: Place): void;
  readonly keys: readonly KeyRecord[];
};

export function auditKeys(scratch: AuditScratch): KeyAudit {
  /** Receipts by `<key>/<iat>/<stream>`. */
  const issued = scratch.table<Place>('issued');
  let keys: readonly KeyRecord[] = [];
  let secretCheck: string | null = null;

  function* closedBetween(before: KeyRecord, after: KeyRecord): Generator<Place> {
    for (const [name, place] of issued.entries(`${before.keyId}/`)) {
      const iat = Number(name.split('/')[1]);
      if (keyOpenAt(before, iat) && !keyOpenAt(after, iat)) yield place;
    }
  }

  return {
    get keys() {
      return keys;
    },
    take(event) {
      const faults = keyFaults({ keys, secretCheck }, event);
      const { keyId } = event.data;
      const before = keys.find((key) => key.keyId === keyId);
      keys = evolveKeys(keys, event);
      if (event.type === 'SigningKeyActivated') secretCheck ??= event.data.secretCheck;
      const after = keys.find((key) => key.keyId === keyId);
      const undone = before === undefined || after === undefined ? [] : closedBetween(before, after);
      return { faults, undone };
    },
    issued(keyId, iat, place) {
      issued.put(`${keyId}/${String(iat).padStart(16, '0')}/${place.stream}`, place);
    },
  };
}
