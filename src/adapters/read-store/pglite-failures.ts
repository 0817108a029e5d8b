// What failed statements say of the files of an embedded store: that they are damaged, or only that they are not to be
// believed at the next start.

/** Internal and system errors of the database, and what it answers after a panic. */
const DAMAGED = /^(XX|58|F0|24000)/;

/** One error can have another cause, and three in a month too: so many within so long prove that the files are damaged. */
const PROOF = { failures: 3, withinMs: 60_000 };

export type Failures = {
  /** Whether the next start replays the files: a statement failed, and neither its values nor the disk's space caused it. */
  areSuspect(): boolean;
  proveDamage(): boolean;
};

/** `onDamage` is called once. `now`: monotonic ms. */
export function countFailures(
  onDamage: (cause: unknown) => void,
  now: () => number,
): Failures & { readonly add: (cause: unknown) => void } {
  let suspect = false;
  let proved = false;
  let damages: readonly number[] = [];
  return {
    areSuspect: () => suspect,
    proveDamage: () => proved,
    add(cause) {
      const isTrapped = isTrap(cause);
      const state = sqlStateOf(cause);
      if (isTrapped || (state !== null && !/^(22|53)/.test(state))) suspect = true;
      if (proved || !(isTrapped || DAMAGED.test(state ?? ''))) return;
      damages = [...damages.filter((at) => now() - at < PROOF.withinMs), now()];
      if (damages.length < PROOF.failures) return;
      proved = true;
      onDamage(cause);
    },
  };
}

/** PGlite itself stopped: a trap of its WebAssembly, or an exit. */
function isTrap(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (/^(RuntimeError|ExitStatus)$/.test(at.name)) return true;
  return false;
}

/** The SQLSTATE; null: the database has not answered with an error. drizzle wraps what the driver threw. */
function sqlStateOf(error: unknown): string | null {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code)) return at.code;
  return null;
}
