// The windows as this process knows them: what the shared count last said, and what was counted here alone while the
// shared one did not answer. It decides nothing about who is asked.

export type Window = {
  /** Units taken, the refused ones too. */
  readonly points: number;
  /** ms until it ends; 0 or more. */
  readonly resetMs: number;
};

export type OwnWindows = {
  /** null: none is open. */
  open(key: string): Window | null;
  /** Counts here, on top of what is known of the shared window: a process alone never gives more than the limit. */
  take(key: string, units: number, windowMs: number): Window;
  /**
   * The shared window as it is after `units` more. What was counted here alone meanwhile is not in it: until that
   * window ends it is gone on with, and the answer is the one of the two that has more.
   */
  learn(key: string, units: number, shared: Window): Window;
};

type Held = { points: number; readonly endsAt: number; alone: boolean };

/** `monotonic`: ms. Of more than `keysMax` keys the oldest window is forgotten. */
export function ownWindows(monotonic: () => number, keysMax: number): OwnWindows {
  /** By the start of the window as it was learned, oldest first. */
  const held = new Map<string, Held>();
  const live = (key: string, now: number): Held | null => {
    const found = held.get(key);
    return found !== undefined && found.endsAt > now ? found : null;
  };
  const forgetOldest = () => {
    for (const key of held.keys()) {
      held.delete(key);
      return;
    }
  };
  const hold = (key: string, window: Held): Held => {
    held.delete(key);
    held.set(key, window);
    if (held.size > keysMax) forgetOldest();
    return window;
  };
  const shown = ({ points, endsAt }: Held, now: number): Window => ({ points, resetMs: endsAt - now });
  return {
    open(key) {
      const now = monotonic();
      const window = live(key, now);
      return window === null ? null : shown(window, now);
    },
    take(key, units, windowMs) {
      const now = monotonic();
      const window = live(key, now) ?? hold(key, { points: 0, endsAt: now + windowMs, alone: true });
      window.alone = true;
      window.points += units;
      return shown(window, now);
    },
    learn(key, units, shared) {
      const now = monotonic();
      const window = live(key, now);
      if (window?.alone !== true) {
        hold(key, { points: shared.points, endsAt: now + shared.resetMs, alone: false });
        return shared;
      }
      window.points += units;
      return fuller(shown(window, now), shared);
    },
  };
}

export const fuller = (one: Window, other: Window): Window => (one.points > other.points ? one : other);
