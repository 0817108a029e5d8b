// Callers that continue through every fault, each with keys of its own: whatever is answered but a result is answered by
// the same again. It keeps what was acknowledged, and knows what the target must have seen.
import assert from 'node:assert/strict';
import { sleep } from '#src/lib/time.ts';
import { assertReplays, hitsOf } from '#test/support/given/fault-words.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import {
  type Answered,
  type ErrorBody,
  type Executed,
  execute,
  type World,
} from '#test/support/world/service-world.ts';
import type { Service } from './service.ts';

export type Acknowledged = {
  readonly path: string;
  readonly request: unknown;
  readonly executed: Executed;
  /** Whom the last try asked. */
  readonly by: Service;
};

export type FaultLoad = {
  readonly acknowledged: readonly Acknowledged[];
  /** Answers that were no result, by code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** ms of the slowest call that brought a result. */
  slowestMs(): number;
  /** No new keys from now on; resolves when every call has its result. */
  finish(): Promise<void>;
  /** Each: one request at the target, the stored result by its key, a proof in every check, wherever it is asked. */
  assertKept(services: readonly Service[]): Promise<void>;
};

export type FaultLoadOptions = {
  readonly callers: number;
  /** Names paths and keys. */
  readonly name: string;
  /** Codes of answers after which a caller repeats; any other fails the load. */
  readonly repeatAfter: readonly string[];
  /** ms between two calls of one caller. */
  readonly paceMs?: number;
};

/** The target answers 500 to every seventh path; the callers ask the services in turn. */
export function startFaultLoad(
  world: World,
  services: readonly Service[],
  { callers, name, repeatAfter, paceMs = 0 }: FaultLoadOptions,
): FaultLoad {
  const acknowledged: Acknowledged[] = [];
  const refusals = new Map<string, number>();
  let calls = 0;
  let over = false;
  let slowest = 0;
  world.target.answer(({ path }) => ({ status: Number(path.split('-').at(-1)) % 7 === 0 ? 500 : 200 }));

  async function callOnce(n: number): Promise<void> {
    const path = `/${name}-${n}`;
    const request = { url: world.target.url(path), idempotencyKey: path, body: { n } };
    for (let tries = 0; ; tries++) {
      const by = services[(n + tries) % services.length];
      assert.ok(by);
      const begun = performance.now();
      const answer = await execute(by, request);
      if (isResult(answer)) {
        slowest = Math.max(slowest, performance.now() - begun);
        assert.equal(answer.status, n % 7 === 0 ? 502 : 200);
        acknowledged.push({ path, request, executed: answer.body, by });
        return;
      }
      const { code } = answer.body.error;
      assert.ok(repeatAfter.includes(code), `${answer.status} ${code}`);
      refusals.set(code, (refusals.get(code) ?? 0) + 1);
      await sleep(100);
    }
  }

  async function caller(): Promise<void> {
    while (!over) {
      await callOnce(++calls);
      if (paceMs > 0) await sleep(paceMs);
    }
  }
  const running = Promise.all(Array.from({ length: callers }, caller));
  running.catch(() => undefined);
  return {
    acknowledged,
    refusals,
    slowestMs: () => slowest,
    async finish() {
      over = true;
      await running;
    },
    async assertKept(all) {
      assert.equal(acknowledged.length, calls);
      for (const [n, { path, request, executed, by }] of acknowledged.entries()) {
        assert.equal(hitsOf(world, path), 1, path);
        // Every one where it was not answered; of the proofs some, for they take their time.
        for (const service of all) if (service !== by) await assertReplays(service, request, executed);
        if (n % 10 === 0) await assertStands(all[n % all.length] ?? by, executed);
      }
    },
  };
}

const isResult = ({ status }: Answered<Executed & ErrorBody>) => status === 200 || status === 502;
