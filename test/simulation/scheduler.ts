// Virtual time, and the order of everything: each answer of a port and each timer is a task, the earliest runs next, and
// the seed orders those of one moment. Between two tasks all promise reactions run, and nothing else can.
import { setImmediate } from 'node:timers';
import type { Random } from './random.ts';

/** What tasks belong to: a process of the service, or a client. Tasks of one that has ended do not run. */
export type Owner = {
  readonly name: string;
  alive: boolean;
  /** Virtual ms: until then nothing runs in it. */
  frozenUntil: number;
};

type Task = {
  at: number;
  readonly rank: number;
  readonly order: number;
  readonly owner: Owner | null;
  readonly run: () => void;
};

const isBefore = (a: Task, b: Task): boolean =>
  a.at !== b.at ? a.at < b.at : a.rank !== b.rank ? a.rank < b.rank : a.order < b.order;

export type Cancellable = { cancelled: boolean };

export class Scheduler {
  /** Virtual ms since the start. */
  now = 0;
  steps = 0;
  readonly #random: Random;
  readonly #heap: Task[] = [];
  #order = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Runs `work` after `ms` of virtual time. `owner` null: of the world outside. */
  after(ms: number, owner: Owner | null, work: () => void): Cancellable {
    const handle = { cancelled: false };
    const run = () => {
      if (!handle.cancelled) work();
    };
    this.#push({
      at: this.now + Math.max(0, ms),
      rank: this.#random.next(),
      order: this.#order++,
      owner,
      run,
    });
    return handle;
  }

  /** A timer of the world outside. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, null, resolve));
  }

  /** Runs tasks until `isDone`, or the time is over, or no task is left. `steps`: at most so many. */
  async run(until: number, isDone: () => boolean, maxSteps = Number.POSITIVE_INFINITY): Promise<void> {
    await drained();
    while (!isDone() && this.steps < maxSteps) {
      const task = this.#heap[0];
      if (task === undefined && !Number.isFinite(until)) return;
      if (task === undefined || task.at > until) {
        this.now = until;
        return;
      }
      this.#pop();
      const { owner } = task;
      if (owner !== null && !owner.alive) continue;
      if (owner !== null && owner.frozenUntil > task.at) {
        task.at = owner.frozenUntil;
        this.#push(task);
        continue;
      }
      this.now = Math.max(this.now, task.at);
      this.steps++;
      task.run();
      await drained();
    }
  }

  #push(task: Task): void {
    const heap = this.#heap;
    heap.push(task);
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfBefore(at, parent)) return;
      at = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const [a, b] = [heap[left], heap[right]];
      const next = a !== undefined && b !== undefined && isBefore(b, a) ? right : left;
      if (!this.#swapIfBefore(next, at)) return;
      at = next;
    }
  }

  #swapIfBefore(child: number, parent: number): boolean {
    const heap = this.#heap;
    const [a, b] = [heap[child], heap[parent]];
    if (a === undefined || b === undefined || !isBefore(a, b)) return false;
    heap[child] = b;
    heap[parent] = a;
    return true;
  }
}

/** All promise reactions have run: the next turn of the event loop begins after them. */
const drained = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
