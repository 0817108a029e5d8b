// Virtual time, and the order of everything: each answer of a port and each timer is a task, the earliest runs next, and
// the seed orders those of one moment. Between two tasks all promise reactions run, and nothing else can.
import { setImmediate } from 'node:timers';
import type { Random } from '#test/support/world/random.ts';

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
  readonly handle: Cancellable;
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
    this.#push({
      at: this.now + Math.max(0, ms),
      rank: this.#random.next(),
      order: this.#order++,
      owner,
      handle,
      run: work,
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
      if (task.handle.cancelled) continue;
      task.run();
      await drained();
    }
  }

  #push(task: Task): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(task);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(task, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = task;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      let child = heap[below];
      if (child === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        child = right;
        below++;
      }
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
  }
}

/** All promise reactions have run: the next turn of the event loop begins after them. */
const drained = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
