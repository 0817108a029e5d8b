import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LIMITS } from '#src/domain/limits.ts';
import { placesOf } from '#src/domain/places.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Release } from '#src/usecases/execution/process-limits.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { letPass, type ManualClock, manualClock, quiet } from '#test/support/world/fakes.ts';
import { enterAll } from '#test/support/world/fakes-admission.ts';

const WAIT = LIMITS.verifyWaitMs.max;

type Entered = Release | Promise<Release | Refused>;

function admitted(entered: Entered | Refused): Release {
  assert.ok(typeof entered === 'function', 'the caller has to wait');
  return entered;
}
const isWaiting = (entered: Entered) => typeof entered !== 'function';

/** The names of the callers that were admitted, in order. Each leaves when `next` is called, the first admitted first. */
function line(limit: VerifyLimit) {
  const order: string[] = [];
  const refused: string[] = [];
  const inside: Release[] = [];
  return {
    order,
    refused,
    join(name: string, client: string, payer = name, ending?: Cancel) {
      void Promise.resolve(limit.enter({ client, payer }, WAIT, ending)).then((entered) => {
        if (isRefused(entered)) return refused.push(name);
        order.push(name);
        return inside.push(entered);
      });
    },
    async next() {
      inside.shift()?.();
      await quiet();
    },
  };
}

function given() {
  const clock = manualClock();
  const limit = new VerifyLimit(clock, placesOf(512, { hasSchedules: true }));
  return { clock, limit };
}

test('a free place is entered at once, without a timer', () => {
  const { clock, limit } = given();
  for (const leave of enterAll(limit)) leave();
  enterAll(limit);
  assert.deepEqual(clock.slept, []);
});

test('16 at once in all, 2 of one client, 1 of one payer; the others wait', () => {
  const { limit } = given();
  const own = [admitted(limit.enter({ client: 'a', payer: 'p1' }, WAIT))];
  assert.ok(isWaiting(limit.enter({ client: 'b', payer: 'p1' }, WAIT)), 'the same payer');
  own.push(admitted(limit.enter({ client: 'a', payer: 'p2' }, WAIT)));
  assert.ok(isWaiting(limit.enter({ client: 'a', payer: 'p3' }, WAIT)), 'a third of one client');
  const rest = Array.from({ length: 14 }, (_, i) => limit.enter({ client: `c${i}`, payer: `q${i}` }, WAIT));
  for (const entered of rest) admitted(entered);
  assert.ok(isWaiting(limit.enter({ client: 'd', payer: 'p4' }, WAIT)), 'a seventeenth');
});

test('a place given back twice is one place', async () => {
  const { limit } = given();
  const [first = assert.fail()] = enterAll(limit);
  const queue = line(limit);
  queue.join('x', 'x');
  queue.join('y', 'y');
  first();
  first();
  await quiet();
  assert.deepEqual(queue.order, ['x']);
});

test('waiting callers are served in turn over their addresses, each address in the order of its calls', async () => {
  const { limit } = given();
  const before = enterAll(limit);
  const queue = line(limit);
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.join(name, name.slice(0, 1));
  for (const leave of before.slice(0, 1)) leave();
  await quiet();
  for (let i = 0; i < 5; i++) await queue.next();
  assert.deepEqual(queue.order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('a caller whose payer or address has its share delays no other', async () => {
  const { limit } = given();
  const leave = admitted(limit.enter({ client: 'a', payer: 'p' }, WAIT));
  const queue = line(limit);
  queue.join('same payer', 'a', 'p');
  queue.join('other payer', 'a');
  await quiet();
  assert.deepEqual(queue.order, ['other payer']);
  leave();
  await quiet();
  assert.deepEqual(queue.order, ['other payer', 'same payer']);
});

test('one place given back may admit two: one of its address, one of its payer', async () => {
  const { limit } = given();
  const leave = admitted(limit.enter({ client: 'a', payer: 'p' }, WAIT));
  admitted(limit.enter({ client: 'a', payer: 'q' }, WAIT));
  const queue = line(limit);
  queue.join('of the address', 'a', 'r');
  queue.join('of the payer', 'b', 'p');
  leave();
  await quiet();
  assert.deepEqual(queue.order, ['of the address', 'of the payer']);
});

test('too_many_in_flight: a wait ends after its time, and at once if there is none', async () => {
  const { clock, limit } = given();
  enterAll(limit);
  const late = await letPass(clock, Promise.resolve(limit.enter({ client: 'a', payer: 'p' }, 700)));
  assert.ok(isRefused(late));
  assert.deepEqual([late.refused, late.retryAfterSeconds], ['too_many_in_flight', 2]);
  assert.equal(clock.monotonic(), 700);
  const none = await limit.enter({ client: 'a', payer: 'p' }, 0);
  assert.ok(isRefused(none));
  assert.deepEqual(clock.slept, [700]);
});

test('the shutdown ends every wait, and no wait begins after it', async () => {
  const { limit } = given();
  const [first = assert.fail()] = enterAll(limit);
  const queue = line(limit);
  const ending = new Cancel();
  for (const name of ['a', 'b']) queue.join(name, name, name, ending);
  ending.abort();
  queue.join('c', 'c', 'c', ending);
  await quiet();
  assert.deepEqual(queue.refused.sort(), ['a', 'b', 'c']);
  first();
  await quiet();
  assert.deepEqual(queue.order, []);
});

test('the listeners of a wait are removed when it ends, whichever way', async () => {
  const { clock, limit } = given();
  const [first = assert.fail()] = enterAll(limit);
  let listeners = 0;
  const ending = {
    aborted: false,
    addEventListener: () => ++listeners,
    removeEventListener: () => --listeners,
  };
  const enter = (name: string) => limit.enter({ client: name, payer: name }, WAIT, ending);
  const waits = [enter('served'), enter('late')];
  assert.equal(listeners, 2);
  first();
  await letPass(clock, Promise.all(waits));
  assert.equal(listeners, 0);
});

test('too_many_in_flight: when 128 wait, the newest of the address with the most gives way to one with fewer', async () => {
  const { limit } = given();
  const before = enterAll(limit);
  const queue = line(limit);
  for (let i = 0; i < LIMITS.verifiesWaiting.max - 1; i++) queue.join(`greedy ${i}`, 'greedy');
  queue.join('second', 'other');
  queue.join('third', 'other');
  await quiet();
  assert.deepEqual(queue.refused, [`greedy ${LIMITS.verifiesWaiting.max - 2}`]);
  queue.join('one more', 'greedy');
  await quiet();
  assert.deepEqual(queue.refused.slice(1), ['one more']);
  before[0]?.();
  await quiet();
  await queue.next();
  await queue.next();
  assert.deepEqual(queue.order, ['greedy 0', 'second', 'greedy 1']);
});

test('too_many_in_flight: where every address waits with one call, one more is refused', async () => {
  const { limit } = given();
  enterAll(limit);
  const queue = line(limit);
  for (let i = 0; i < LIMITS.verifiesWaiting.max; i++) queue.join(`${i}`, `${i}`);
  queue.join('one more', 'one more');
  await quiet();
  assert.deepEqual(queue.refused, ['one more']);
});

// ── any order of arrivals, departures, waits that end ───────────────────────────────────────────────────

const Step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ client: fc.nat(4), payer: fc.nat(5), wait: fc.integer({ min: 1, max: 50 }) }),
  },
  { weight: 3, arbitrary: fc.record({ leave: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 30 }) }) },
);

async function drain(clock: ManualClock): Promise<void> {
  for (await quiet(); clock.advanceToNext(); await quiet());
}

test('any history: no share is exceeded, no place is left free for one that waits, and nothing leaks', async () => {
  const property = fc.asyncProperty(fc.array(Step, { maxLength: 80 }), async (steps) => {
    const { clock, limit } = given();
    const inside: { readonly client: number; readonly payer: number; readonly leave: Release }[] = [];
    const waiting = new Set<{ readonly client: number; readonly payer: number }>();
    const mayEnter = ({ client, payer }: { client: number; payer: number }) =>
      inside.length < LIMITS.verifiesInFlight.max &&
      inside.filter((other) => other.client === client).length < LIMITS.verifiesPerClient.max &&
      inside.every((other) => other.payer !== payer);
    for (const step of steps) {
      if ('wait' in step) {
        const { client, payer, wait } = step;
        const caller = { client, payer };
        waiting.add(caller);
        void Promise.resolve(limit.enter({ client: `${client}`, payer: `${payer}` }, wait)).then(
          (entered) => {
            waiting.delete(caller);
            if (isRefused(entered)) return;
            assert.ok(mayEnter(caller));
            inside.push({ ...caller, leave: entered });
          },
        );
      } else if ('leave' in step) inside.splice(step.leave % Math.max(1, inside.length), 1)[0]?.leave();
      else clock.advance(step.pass);
      await quiet();
      for (const caller of waiting) assert.ok(!mayEnter(caller));
    }
    await drain(clock);
    assert.equal(waiting.size, 0);
    for (const { leave } of inside) leave();
    enterAll(limit);
  });
  await fc.assert(property, { numRuns: runs(60) });
});
