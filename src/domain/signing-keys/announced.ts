// The stream of the signing keys, folded.
import type { KeyEvent } from '../events.ts';
import { evolveKeys, type KeyRecord } from './keys.ts';

/** What the stream of the keys contains: every key ever announced, and checks of the secrets of the files that held them. */
export type AnnouncedKeys = {
  readonly keys: readonly KeyRecord[];
  readonly secretChecks: ReadonlySet<string>;
};

export const NO_KEYS: AnnouncedKeys = { keys: [], secretChecks: new Set() };

export function evolveAnnounced({ keys, secretChecks }: AnnouncedKeys, event: KeyEvent): AnnouncedKeys {
  const isActivated = event.type === 'SigningKeyActivated';
  return {
    keys: evolveKeys(keys, event),
    secretChecks: isActivated ? new Set([...secretChecks, event.data.secretCheck]) : secretChecks,
  };
}
