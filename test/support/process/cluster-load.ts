// A steady load of keyed calls over the processes of a cluster: each call once, with a key and a path of its own.

import { type Answered, type ErrorBody, type Executed, execute } from '#test/support/world/service-world.ts';
import type { Member } from './cluster.ts';
import type { TlsTarget } from './tls-target.ts';

export type Call = {
  readonly path: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly at: Member;
  /** null: not yet, or cut. */
  answer: Answered<Executed & ErrorBody> | null;
  /** The connection broke before there was an answer. */
  cut: boolean;
};

export type Load = {
  /** In the order they were begun. */
  readonly calls: readonly Call[];
  /** One call more; resolves when it is answered or cut. */
  call(at: Member, path: string, timeoutMs?: number): Promise<void>;
  /** From now on calls go to these, in turn. */
  over(members: readonly Member[]): void;
  /** Calls that this one has not answered. */
  open(member: Member): number;
  /** Begins no more; resolves when all have ended. */
  stop(): Promise<void>;
};

/** Of each call of the load; the lease is 15 s longer. */
const TIMEOUT_MS = 1000;

/** `callers`: as many calls are open at any time. `name`: no two loads of one target have the same. */
export function startLoad(
  target: TlsTarget,
  members: readonly Member[],
  { callers = 12, name = 'kills' } = {},
): Load {
  const calls: Call[] = [];
  let living = members;
  let over = false;

  async function call(at: Member, path: string, timeoutMs = TIMEOUT_MS): Promise<void> {
    const request = { url: target.url(path), body: path, idempotencyKey: path, timeoutMs };
    const mine: Call = { path, request, at, answer: null, cut: false };
    calls.push(mine);
    mine.answer = await execute(at, request).catch(() => null);
    mine.cut = mine.answer === null;
  }

  async function caller(): Promise<void> {
    while (!over) {
      const n = calls.length;
      const at = living[n % living.length];
      if (at === undefined) throw new Error('no process is alive');
      await call(at, `/load/${name}/${n}`);
    }
  }

  const running = Promise.all(Array.from({ length: callers }, caller));
  return {
    calls,
    call,
    over(next) {
      living = next;
    },
    open: (member) => calls.filter(({ at, answer, cut }) => at === member && answer === null && !cut).length,
    async stop() {
      over = true;
      await running;
    },
  };
}
