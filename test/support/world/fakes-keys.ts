// A key file in memory, which several processes of one machine may share, and keys that were announced in a log.

import type { KeyPurpose } from '#src/domain/events/signing-keys.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { KeyStore, KeyStoreContent, StoredKey } from '#src/ports/key-store.ts';
import { at, hex, keyActivated } from '#test/support/given/given-events.ts';
import { testKey } from '#test/support/given/primitives.ts';

export function storedKey(purpose = 'receipt', changes: Partial<StoredKey> = {}): StoredKey {
  const { keyId, x, sign } = testKey();
  const agentKey = purpose === 'receipt' ? testKey() : null;
  return { keyId, x, sign, purpose, status: 'active', agentKey, ...changes };
}

export const activationOf = ({ keyId, x, purpose }: StoredKey, ms = -60_000): DomainEvent =>
  keyActivated({ keyId, x, purpose: purpose as KeyPurpose, activatedAt: at(ms) });

export type MemoryKeyStore = KeyStore & {
  /** What the file says now. */
  put(content: Partial<KeyStoreContent>): void;
  /** From now on reading throws this; null: no more. */
  breakWith(error: Error | null): void;
  /** `purpose status` of each key, in order. */
  states(): readonly string[];
};

export const memoryKeyStore = (...keys: readonly StoredKey[]): MemoryKeyStore => keyStoreOf(keys, storedKey);

/** `fresh`: makes a key of the purpose. */
export function keyStoreOf(
  keys: readonly StoredKey[],
  fresh: (purpose: string) => StoredKey,
): MemoryKeyStore {
  let content: KeyStoreContent = { keys, secretCheck: hex('3') };
  let broken: Error | null = null;
  const read = () => {
    if (broken !== null) throw broken;
    return content;
  };
  return {
    read,
    update(change) {
      const wanted = change(read());
      if (wanted === null) return content;
      const kept = content.keys.map((key) =>
        wanted.retired.includes(key.keyId) ? { ...key, status: 'retired' as const } : key,
      );
      content = { ...content, keys: [...wanted.fresh.map((purpose) => fresh(purpose)), ...kept] };
      return content;
    },
    put(changes) {
      content = { ...content, ...changes };
    },
    breakWith(error) {
      broken = error;
    },
    states: () => content.keys.map(({ purpose, status }) => `${purpose} ${status}`),
  };
}
