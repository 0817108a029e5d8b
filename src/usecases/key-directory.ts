// The public keys of this relay, as the log tells of them, kept at hand for everyone who verifies.
import type { KeyRecord } from '../domain/receipt/keys.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventLog } from '../ports/event-log.ts';
import { loadKeyRing } from './signing-keys.ts';

export type KeyDirectory = {
  /** Every key ever announced, at most 5 s old; older where the log is away. */
  list(): Promise<readonly KeyRecord[]>;
};

/** Short beside the 10 minutes after which a retirement takes effect. */
const FRESH_FOR_MS = 5000;

/** `known`: the keys as just read, so that it has an answer from the start. */
export function keyDirectory(
  deps: { readonly log: EventLog; readonly clock: Clock },
  known: readonly KeyRecord[] | null = null,
): KeyDirectory {
  let held = known && { keys: known, at: deps.clock.monotonic() };
  return {
    async list() {
      const now = deps.clock.monotonic();
      if (held !== null && now - held.at < FRESH_FOR_MS) return held.keys;
      try {
        const { keys } = await loadKeyRing(deps);
        held = { keys, at: now };
      } catch (error) {
        if (held === null) throw error;
      }
      return held.keys;
    },
  };
}
