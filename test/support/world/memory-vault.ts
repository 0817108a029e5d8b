// Sealed texts in memory, of all processes of a deployment. What a caller asks of them may fail on the way.
import type { NewText, TextStore } from '#src/adapters/vault/sealed.ts';

export class MemoryTexts {
  readonly keys = new Map<string, NewText>();

  insert(made: NewText): void {
    const isFull = made.seat !== null && this.held(made.seat.holder).length >= made.seat.max;
    if (!this.keys.has(made.name) && !isFull) this.keys.set(made.name, made);
  }

  held(holder: string): readonly string[] {
    const own = [...this.keys.values()].filter(({ seat }) => seat?.holder === holder);
    return own.map(({ seat }) => String(seat?.amount));
  }

  /** `ask` brings a question to the store and its answer back. `now`: its clock, Unix ms; null: it has none. */
  store(
    ask: <T>(what: string | null, effect: () => T) => Promise<T>,
    now: () => number | null,
    callersNow: () => number = Date.now,
  ): TextStore {
    return {
      insert: (made) => ask('a write of the vault', () => this.insert(made)),
      find: (name) => ask('a read of the vault', () => this.keys.get(name) ?? null),
      names: () => ask(null, () => [...this.keys.keys()]),
      held: (holder) => ask(null, () => this.held(holder)),
      delete: (names) =>
        ask('a deletion in the vault', () => {
          for (const name of names) this.keys.delete(name);
        }),
      deleteEnded: () =>
        ask(null, () => {
          const at = now() ?? callersNow();
          for (const { name, untilMs } of this.keys.values()) if (untilMs < at) this.keys.delete(name);
        }),
      now: () => (now() === null ? Promise.resolve(null) : ask(null, now)),
      close: async () => undefined,
    };
  }
}
