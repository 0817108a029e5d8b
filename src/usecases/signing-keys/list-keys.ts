// Every key that the log knows, and every one that stands in the file, for an operator.
import { type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { HeldKey } from '#src/domain/signing-keys/local-keys.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { loadKeyRing, windowOf } from './announce-keys.ts';

/** `unannounced`: in the file, and not in the log: it signs nothing yet. */
export type KeyState = 'active' | 'retiring' | 'retired' | 'compromised' | 'unannounced';

export type ListedKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly state: KeyState;
  /** RFC 3339. */
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  readonly compromisedAt: string | null;
  /** What the key file says of its private half; null where it has none. */
  readonly inFile: HeldKey['status'] | null;
};

/** In the order of the log, then of the file. `held`: the keys of the file. */
export async function listKeys(
  { log, clock }: Pick<JournalDeps, 'log' | 'clock'>,
  held: readonly HeldKey[],
): Promise<readonly ListedKey[]> {
  const { keys } = await loadKeyRing({ log });
  const now = Math.floor(clock.now() / 1000);
  const inFile = (keyId: string) => held.find((key) => key.keyId === keyId)?.status ?? null;
  const announced = keys.map((key) => ({ ...announcedKey(key, now), inFile: inFile(key.keyId) }));
  const others = held.filter(({ keyId }) => !keys.some((key) => key.keyId === keyId));
  return [
    ...announced,
    ...others.map(({ keyId, purpose, status }) => ({
      keyId,
      purpose,
      state: 'unannounced' as const,
      notBefore: null,
      notAfter: null,
      compromisedAt: null,
      inFile: status,
    })),
  ];
}

function announcedKey(key: KeyRecord, now: number): Omit<ListedKey, 'inFile'> {
  const { keyId, purpose } = key;
  return { keyId, purpose, state: stateOf(key, now), ...windowOf(key) };
}

function stateOf(key: KeyRecord, now: number): KeyState {
  if (key.compromisedAt !== null) return 'compromised';
  if (key.notAfter === null) return 'active';
  return keyOpenAt(key, now) ? 'retiring' : 'retired';
}
