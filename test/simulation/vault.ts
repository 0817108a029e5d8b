// Sealed texts in memory: one store for all processes of a deployment, whose content may be lost.
import { type NewText, sealedVault } from '#src/adapters/vault/sealed.ts';
import type { Vault } from '#src/ports/vault.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { MemoryTexts } from '#test/support/world/memory-vault.ts';
import { EPOCH, type Fate, type Host } from './host.ts';
import type { StoreWeather } from './row-store.ts';

export class VaultStore extends MemoryTexts {
  readonly #ever = new Map<string, NewText>();
  /** Texts were lost. */
  wasLost = false;

  lose(): void {
    this.wasLost = true;
    this.keys.clear();
  }

  override insert(made: NewText): void {
    super.insert(made);
    if (this.keys.get(made.name) === made) this.#ever.set(made.name, made);
  }

  /** A snapshot from before the deletions is restored. */
  restore(): void {
    for (const made of this.#ever.values()) this.keys.set(made.name, made);
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

  const now = () => (exclusive ? null : EPOCH + scheduler.now);
  return sealedVault(store.store(ask, now, host.clock.now), hashWith('vault'));
}
