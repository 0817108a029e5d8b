// The public keys of this relay, as the log tells of them, kept at hand for everyone who verifies.
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { loadKeyRing } from './announce-keys.ts';

export type KeyDirectory = {
  /** Every key ever announced, at most 5 s old; older where the log is away. */
  list(): Promise<readonly KeyRecord[]>;
  /** The same as the log has them now, for `list` too. Throws where the log is away. */
  refresh(): Promise<readonly KeyRecord[]>;
};

export type KeysAtHand = {
  /** As last read, whoever asked: the log is not. Empty where nobody did. */
  atHand(): readonly KeyRecord[];
};

/** Short beside the 10 minutes after which a retirement takes effect. */
const FRESH_FOR_MS = 5000;

/** `known`: the keys as just read, so that it has an answer from the start. */
export function keyDirectory(
  deps: { readonly log: EventLog; readonly clock: Clock },
  known: readonly KeyRecord[] | null = null,
): KeyDirectory & KeysAtHand {
  let held = known && { keys: known, at: deps.clock.monotonic() };
  async function refresh() {
    const at = deps.clock.monotonic();
    const { keys } = await loadKeyRing(deps);
    // A slower read that began earlier takes nothing back.
    if (held === null || at >= held.at) held = { keys, at };
    return held.keys;
  }
  return {
    refresh,
    atHand: () => held?.keys ?? [],
    async list() {
      if (held !== null && deps.clock.monotonic() - held.at < FRESH_FOR_MS) return held.keys;
      try {
        return await refresh();
      } catch (error) {
        if (held === null) throw error;
        return held.keys;
      }
    },
  };
}
