// The signing keys in an audit: as announced so far, and the receipts that a later retirement revokes.

import type { EventLocation, Fault } from '#src/domain/audit/finding.ts';
import { keyFaults } from '#src/domain/audit/judge-keys.ts';
import type { KeyEvent } from '#src/domain/events.ts';
import { evolveKeys, type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

type KeyAudit = {
  /** `revoked`: earlier receipts that no longer verify. */
  take(event: KeyEvent): { readonly faults: readonly Fault[]; readonly revoked: Iterable<EventLocation> };
  /** A receipt whose key was valid when it was issued. `iat`: Unix seconds. */
  issued(keyId: string, iat: number, location: EventLocation): void;
  readonly keys: readonly KeyRecord[];
};

export function auditKeys(scratch: AuditScratch): KeyAudit {
  /** Receipts by `<key>/<iat>/<stream>`. */
  const issued = scratch.table<EventLocation>('issued');
  let keys: readonly KeyRecord[] = [];
  let secretCheck: string | null = null;

  function* closedBetween(before: KeyRecord, after: KeyRecord): Generator<EventLocation> {
    for (const [name, location] of issued.entries(`${before.keyId}/`)) {
      const iat = Number(name.split('/')[1]);
      if (keyOpenAt(before, iat) && !keyOpenAt(after, iat)) yield location;
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
      const revoked = before === undefined || after === undefined ? [] : closedBetween(before, after);
      return { faults, revoked };
    },
    issued(keyId, iat, location) {
      issued.put(`${keyId}/${String(iat).padStart(16, '0')}/${location.stream}`, location);
    },
  };
}
