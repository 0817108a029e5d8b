import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TSchema, Type } from '@sinclair/typebox';
import { EVENT_TYPES, EVENTS } from '#src/domain/events.ts';
import { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import * as samples from '#test/support/given/given-events.ts';
import { payloadOf } from '#test/support/given/given-receipt.ts';

/** As under a content security policy without 'unsafe-eval'. */
function withoutEval<T>(act: () => T): T {
  const { Function: make } = globalThis;
  const forbidden = () => {
    throw new EvalError('code generation from strings is disallowed');
  };
  try {
    Object.assign(globalThis, { Function: forbidden });
    return act();
  } finally {
    Object.assign(globalThis, { Function: make });
  }
}

/** Everything that differs from a good value in one member: gone, null, of another type; and one member too many. */
function spoiled(good: object): unknown[] {
  const parts = Object.entries(good).flatMap(([name, value]) => [
    { ...good, [name]: undefined },
    { ...good, [name]: value === null ? 'x' : null },
    { ...good, [name]: typeof value === 'number' ? 'x' : 7.5 },
  ]);
  return [...parts, { ...good, extra: 1 }, null, [], 'x'];
}

function sameVerdicts(schema: TSchema, good: object): void {
  const compiled = shapeCheck(schema);
  const interpreted = withoutEval(() => shapeCheck(schema));
  assert.equal(compiled(good), true);
  assert.equal(
    withoutEval(() => interpreted(good)),
    true,
  );
  const verdicts = spoiled(good).map((value) => withoutEval(() => interpreted(value)));
  assert.deepEqual(verdicts, spoiled(good).map(compiled));
  assert.ok(verdicts.includes(false));
}

test('receipts and events are judged the same if the runtime cannot generate code', async () => {
  sameVerdicts(ReceiptPayload, await payloadOf());
  const made = Object.values(samples).flatMap((sample) => {
    const event: unknown =
      typeof sample === 'function' && sample.length === 0 ? (sample as () => unknown)() : null;
    return event !== null && typeof event === 'object' && 'type' in event
      ? [event as ReturnType<typeof samples.jobStarted>]
      : [];
  });
  for (const { type, data } of made) {
    const versions: Readonly<Record<number, TSchema>> = EVENTS[type].versions;
    sameVerdicts(versions[data.v] ?? Type.Never(), data);
  }
  assert.deepEqual(new Set(made.map(({ type }) => type as string)), new Set<string>(EVENT_TYPES));
});
