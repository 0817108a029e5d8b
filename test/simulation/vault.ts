// Sealed texts in memory: one store for all processes of a deployment, whose content may be lost.
import { type NewText, sealedVault, type TextStore } from '#src/adapters/vault/sealed.ts';
import type { Vault } from '#src/ports/vault.ts';
import { hashWith } from '#test/support/primitives.ts';
import { EPOCH, type Fate, type Host } from './host.ts';
import type { StoreWeather } from './row-store.ts';

export class VaultStore {
  readonly keys = new Map<string, NewText>();
  readonly #ever = new Map<string, NewText>();
  /** Texts were lost. */
  wasLost = false;

  lose(): void {
    this.wasLost = true;
    this.keys.clear();
  }

  put(made: NewText): void {
    this.keys.set(made.name, made);
    this.#ever.set(made.name, made);
  }

  /** A snapshot from before the deletions is restored. */
  restore(): void {
    for (const made of this.#ever.values()) this.keys.set(made.name, made);
  }

  held(holder: string): readonly string[] {
    const own = [...this.keys.values()].filter(({ seat }) => seat?.holder === holder);
    return own.map(({ seat }) => String(seat?.amount));
  }

  /** Whether what was sealed can still be read. */
  has(sealed: string): boolean {
    return this.keys.has(sealed);
  }
}

/** `exclusive`: embedded, so that it has no clock of its own. */
export function simulatedVault(
  store: VaultStore,
  host: Host,
  weather: StoreWeather,
  exclusive: boolean,
): Vault {
  const { random, scheduler, trace } = host;
  const lost = () => new Error('no answer in time');

  function fateOf<T>(): Fate<T> {
    const drawn = random.next();
    const effect = drawn < weather.lostAnswer;
    if (drawn > weather.lostAnswer + weather.unavailable) return { kind: 'answered' };
    trace.reached(effect ? 'vault with a lost answer' : 'vault that fails');
    return { kind: 'lost', afterMs: random.between(1, 2000), error: lost, effect };
  }
  const ask = <T>(what: string | null, effect: () => T): Promise<T> =>
    host.call(what, effect, { fate: fateOf(), counts: what !== null });

  const texts: TextStore = {
    insert: (made) =>
      ask('a write of the vault', () => {
        const isFull = made.seat !== null && store.held(made.seat.holder).length >= made.seat.max;
        if (!store.keys.has(made.name) && !isFull) store.put(made);
      }),
    find: (name) => ask('a read of the vault', () => store.keys.get(name) ?? null),
    names: () => ask(null, () => [...store.keys.keys()]),
    held: (holder) => ask(null, () => store.held(holder)),
    delete: (names) =>
      ask('a deletion in the vault', () => {
        for (const name of names) store.keys.delete(name);
      }),
    deleteEnded: () =>
      ask(null, () => {
        const now = exclusive ? host.clock.now() : EPOCH + scheduler.now;
        for (const { name, untilMs } of store.keys.values()) if (untilMs < now) store.keys.delete(name);
      }),
    now: () => (exclusive ? Promise.resolve(null) : ask(null, () => EPOCH + scheduler.now)),
    close: async () => undefined,
  };
  return sealedVault(texts, hashWith('vault'));
}
