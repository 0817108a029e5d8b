// Signing keys in an audit: as the record announces them, within the windows of the keys that the auditor trusts.
import type { Fault } from '#src/domain/audit/finding.ts';
import { sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import type { KeyEvent } from '#src/domain/events.ts';
import { evolveKeys, type KeyRecord, narrowedKey, thumbprintText } from '#src/domain/signing-keys/keys.ts';

/** `trusted` null: the record's own keys are. */
export function auditKeys(trusted: readonly KeyRecord[] | null) {
  let keys: readonly KeyRecord[] = [];
  const find = (keyId: string) => keys.find((known) => known.keyId === keyId);
  return {
    /** As announced so far. */
    list: () => keys,
    /** `ended`: the key before and after its retirement. */
    take(event: KeyEvent): {
      readonly faults: readonly Fault[];
      readonly ended: readonly [KeyRecord, KeyRecord] | null;
    } {
      const { keyId } = event.data;
      const before = find(keyId);
      keys = evolveKeys(keys, event).map((key) => narrowedKey(key, trusted ?? []));
      const after = find(keyId);
      if (event.type === 'SigningKeyRetired')
        return before === undefined || after === undefined
          ? { faults: [impossible('the key was never announced')], ended: null }
          : { faults: [], ended: [before, after] };
      const { x, purpose } = event.data;
      const faults: Fault[] = before === undefined ? [] : [impossible('the key was announced before')];
      if (toBase64url(sha256(utf8(thumbprintText(x)))) !== keyId)
        faults.push({ kind: 'key_id_mismatch', message: 'the id of the key is not its thumbprint' });
      if (trusted?.every((known) => known.keyId !== keyId || known.purpose !== purpose))
        faults.push({ kind: 'key_untrusted', message: `the trusted key set lacks the key ${keyId}` });
      return { faults, ended: null };
    },
    /** At the end. */
    missing: (): readonly Fault[] =>
      (trusted ?? [])
        .filter(({ keyId }) => find(keyId) === undefined)
        .map(({ keyId }) => ({
          kind: 'key_missing',
          message: `the record lacks the trusted key ${keyId}, or is older than the key set`,
        })),
  };
}

const impossible = (message: string): Fault => ({ kind: 'key_event_impossible', message });
