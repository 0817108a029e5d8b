// What happened under a seed, in plain sentences, and its hash: two runs of a seed must agree on it.
import { createHash } from 'node:crypto';
import type { Scheduler } from './scheduler.ts';

/** Characters that are hashed at once. */
const BLOCK = 65_536;

export class Trace {
  readonly #hash = createHash('sha256');
  /** Not hashed yet. */
  #text = '';
  readonly #lines: string[] | null;
  readonly #scheduler: Pick<Scheduler, 'now'>;
  /** How often each kind of event or outcome was reached. */
  readonly counts = new Map<string, number>();

  /** `keeps`: the lines are wanted. */
  constructor(scheduler: Pick<Scheduler, 'now'>, keeps: boolean) {
    this.#scheduler = scheduler;
    this.#lines = keeps ? [] : null;
  }

  note(line: string): void {
    const text = `${(this.#scheduler.now / 1000).toFixed(4)} s  ${line}`;
    this.#text += text;
    if (this.#text.length > BLOCK) this.#hashText();
    this.#lines?.push(text);
  }

  /** Counts something for the coverage of the run. */
  reached(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }

  #hashText(): void {
    this.#hash.update(this.#text);
    this.#text = '';
  }

  digest(): string {
    this.#hashText();
    return this.#hash.digest('hex');
  }
}
