// A simulated process (of the service or of an operator) as the world sees it: its clocks, its calls of ports, and its end
// at any of them. What it waits for is answered by the scheduler, or never once it has ended.

import type { Clock, Entropy } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { LineLogger, Logger } from '#src/ports/logger.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import type { Random } from '#test/support/world/random.ts';
import type { Owner, Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

/** Unix ms at virtual time 0: 2026-01-01T00:00:00Z. */
export const EPOCH = Date.UTC(2026, 0, 1);

/** Virtual ms until a request has its effect, and from then until its answer. */
export type Delays = {
  readonly request: readonly [number, number];
  readonly answer: readonly [number, number];
};

export const NEAR: Delays = { request: [0.1, 3], answer: [0.1, 3] };

/** What becomes of one call. `effect` false: the request never arrives. `late`: it arrives so many ms after the answer. */
export type Fate<T> =
  | { readonly kind: 'answered' }
  | {
      readonly kind: 'lost';
      readonly afterMs: number;
      readonly error: () => T | Error;
      readonly effect: boolean;
    }
  | {
      readonly kind: 'late';
      readonly afterMs: number;
      readonly error: () => T | Error;
      readonly lateMs: number;
    };

export const ANSWERED = { kind: 'answered' } as const;

export class Host implements Owner {
  readonly name: string;
  alive = true;
  frozenUntil = 0;
  /** Virtual ms at which its last freeze began. */
  frozenFrom = 0;
  /** Wall clock against true time, ms. */
  wallOffset = 0;
  /** What it does once a second, it does at whole seconds, as the other processes: they see at the same time what is due. */
  wakesTogether = false;
  /** Virtual ms at which the wall clock was set while it ran. */
  setAt = Number.NEGATIVE_INFINITY;
  readonly #sets: { readonly at: number; readonly offset: number }[] = [];
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly trace: Trace;
  /** Ends the process within its call of this number that counts; null: it runs on. */
  killIn: number | null = null;
  readonly #onKilled: (() => void)[] = [];
  /** Calls of ports that have no answer yet. */
  pending = 0;
  /** Virtual ms until which it was last frozen or out of reach of the event log. */
  disturbedUntil = Number.NEGATIVE_INFINITY;
  /** Defects that its logger was given. */
  readonly bugs: string[] = [];
  readonly #monotonicStart: number;

  constructor(name: string, scheduler: Scheduler, random: Random, trace: Trace) {
    this.name = name;
    this.scheduler = scheduler;
    this.random = random;
    this.trace = trace;
    this.#monotonicStart = random.int(0, 1_000_000);
  }

  kill(why: string): void {
    if (!this.alive) return;
    this.alive = false;
    this.trace.note(`${this.name} ends ${why}`);
    this.trace.reached('a process ended or a call failed');
    for (const act of this.#onKilled) act();
  }

  /** The wall clock is set so many ms ahead of true time. */
  setClock(offset: number): void {
    this.wallOffset = offset;
    this.setAt = this.scheduler.now;
    this.#sets.push({ at: this.setAt, offset });
  }

  /** Whether its clock, after it was set, showed a time before this one (Unix ms) at any time `since` then (virtual ms). */
  wasSetBefore(instant: number, since: number): boolean {
    return this.#sets.some(({ at, offset }, n) => {
      const until = this.#sets[n + 1]?.at ?? this.scheduler.now;
      return until >= since && EPOCH + Math.max(at, since) + offset < instant;
    });
  }

  whenKilled(act: () => void): void {
    if (this.alive) this.#onKilled.push(act);
    else act();
  }

  /** Nothing of it runs for so long; what is under way elsewhere continues. */
  freeze(ms: number): void {
    // One that begins within another extends it.
    if (this.frozenUntil < this.scheduler.now) this.frozenFrom = this.scheduler.now;
    this.frozenUntil = Math.max(this.frozenUntil, this.scheduler.now + ms);
    this.disturbedUntil = Math.max(this.disturbedUntil, this.frozenUntil);
    this.trace.note(`${this.name} is frozen for ${Math.round(ms)} ms`);
  }

  /**
   * A call of a port: `effect` runs when the request arrives, and its result or error is the answer. `counts`: the process
   * may be ended by its plan at this call: before the effect, between effect and answer, or at the answer.
   */
  call<T>(
    what: string | null,
    effect: () => T,
    {
      delays = NEAR,
      fate = ANSWERED,
      counts = false,
    }: { delays?: Delays; fate?: Fate<T>; counts?: boolean } = {},
  ): Promise<T> {
    const { scheduler, random } = this;
    if (!this.alive) return new Promise(() => undefined);
    const death = counts ? this.#death() : null;
    const requestMs = random.between(...delays.request);
    const answerMs = random.between(...delays.answer);
    if (what !== null) this.trace.note(`${this.name} calls ${what}`);
    if (death === 'before') {
      // The request may be on its way when the process ends.
      if (random.chance(0.5)) scheduler.after(requestMs, null, () => void attempted(effect));
      this.kill(`at its call of ${what ?? 'a port'}`);
      return new Promise(() => undefined);
    }
    this.pending++;
    if (fate.kind !== 'answered') this.trace.reached('a process ended or a call failed');
    return new Promise<T>((resolve, reject) => {
      const answer = (outcome: Outcome<T>) => {
        this.pending--;
        if (death === 'answer') this.kill(`at the answer of ${what ?? 'a port'}`);
        else if (outcome.ok) resolve(outcome.value);
        else reject(outcome.error);
      };
      const fail = (error: () => T | Error) => {
        const made = error();
        answer(made instanceof Error ? { ok: false, error: made } : { ok: true, value: made });
      };
      if (fate.kind === 'lost') {
        if (fate.effect) scheduler.after(requestMs, null, () => void attempted(effect));
        scheduler.after(fate.afterMs, this, () => fail(fate.error));
      } else if (fate.kind === 'late') {
        scheduler.after(fate.afterMs, this, () => fail(fate.error));
        scheduler.after(fate.afterMs + fate.lateMs, null, () => void attempted(effect));
      } else
        scheduler.after(requestMs, null, () => {
          const outcome = attempted(effect);
          if (death === 'effect') this.kill(`after ${what ?? 'a call'} and before its answer`);
          scheduler.after(answerMs, this, () => answer(outcome));
        });
    });
  }

  #death(): 'before' | 'effect' | 'answer' | null {
    if (this.killIn === null || --this.killIn > 0) return null;
    this.killIn = null;
    return this.random.pick(['before', 'effect', 'answer']);
  }

  readonly clock: Clock = {
    now: () => Math.floor(EPOCH + this.scheduler.now + this.wallOffset),
    monotonic: () => this.#monotonicStart + this.scheduler.now,
    sleep: (ms: number, signal?: AbortSignalLike) =>
      new Promise<void>((resolve) => {
        if (!this.alive) return;
        if (signal?.aborted) return resolve();
        const end = () => {
          timer.cancelled = true;
          signal?.removeEventListener('abort', end);
          resolve();
        };
        const timer = this.scheduler.after(this.#waitOf(ms), this, end);
        signal?.addEventListener('abort', end, { once: true });
      }),
  };

  #waitOf(ms: number): number {
    const { now } = this.scheduler;
    return this.wakesTogether && ms === 1000 ? Math.floor((now + ms) / 1000) * 1000 - now : ms;
  }

  get entropy(): Entropy {
    return this.random;
  }

  get logger(): Logger {
    const { trace, name, bugs } = this;
    const lines: LineLogger = {
      info: (message) => trace.note(`${name} logs: ${message}`),
      warn: (message) => trace.note(`${name} warns: ${message}`),
      error: (message) => trace.note(`${name} logs an error: ${message}`),
      bug(message, fields) {
        const { cause } = (fields ?? {}) as { readonly cause?: unknown };
        bugs.push(`${message}: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`);
        trace.note(`${name} logs a defect of the program: ${message}: ${String(cause)}`);
      },
    };
    return loggerOver(lines, { now: () => 0 });
  }
}

type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

function attempted<T>(effect: () => T): Outcome<T> {
  try {
    return { ok: true, value: effect() };
  } catch (error) {
    return { ok: false, error };
  }
}
