// A steady load of keyed calls over the processes of a cluster: each call once, with a key and a path of its own.
import type { Member } from './cluster.ts';
import { type Answered, type ErrorBody, type Executed, execute } from './service-world.ts';
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
  /** From now on calls go to these, in turn. */
  over(members: readonly Member[]): void;
  /** Calls that this one has not answered. */
  open(member: Member): number;
  /** Begins no more; resolves when all have ended. */
  stop(): Promise<void>;
};

/** What a call's lease is made of; without retries. */
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

  async function caller(): Promise<void> {
    while (!over) {
      const n = calls.length;
      const at = living[n % living.length];
      if (at === undefined) throw new Error('nobody lives');
      const path = `/load/${name}/${n}`;
      const request = { url: target.url(path), body: { n }, idempotencyKey: path, timeoutMs: TIMEOUT_MS };
      const call: Call = { path, request, at, answer: null, cut: false };
      calls.push(call);
      call.answer = await execute(at, request).catch(() => null);
      call.cut = call.answer === null;
    }
  }

  const running = Promise.all(Array.from({ length: callers }, caller));
  return {
    calls,
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
