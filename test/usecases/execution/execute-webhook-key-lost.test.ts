// The wall clock is set while a call is made, so that no key is valid for its receipt: the answer does not say that
// nothing was sent, and it names the job.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { DEMO, execute } from '#test/support/given/given-call.ts';
import { signerOf } from '#test/support/given/primitives.ts';
import { succeeding } from '#test/support/world/fakes.ts';
import { shared, world } from '#test/support/world/fakes-world.ts';

const validFrom = '2026-01-01T00:00:00.000Z';

/** Its key is valid until its first request is sent. */
function losesKey() {
  const common = shared();
  const key = signerOf(common.key).current();
  let isValid = true;
  const current = () => {
    if (isValid) return key;
    throw new Fault('no_signing_key', 'Nothing was sent.', { details: { validFrom } });
  };
  const it = world(common, { signer: { current, former: () => null } });
  it.outbound.script(() => {
    isValid = false;
    return succeeding();
  });
  return it;
}

for (const [call, changes, repeat] of [
  ['a paid call', {}, /same payment header/],
  ['a free call with a key', DEMO, /same idempotencyKey/],
  ['a free call without a key', { ...DEMO, key: null }, null],
] as const) {
  test(`${call}, and no key is valid when it has been sent: the answer names its job and does not say that nothing was sent`, async () => {
    const it = losesKey();
    const fault = await execute(it, changes).catch((error: unknown) => error);
    assert.ok(fault instanceof Fault);
    const jobId = it.log.events.find(({ type }) => type === 'JobStarted')?.data.jobId;
    assert.deepEqual([fault.code, fault.details], ['no_signing_key', { validFrom, jobId }]);
    assert.match(fault.message, /may have been sent: the result will be found at the job/);
    assert.doesNotMatch(fault.message, /nothing was sent/i);
    assert.equal(/Repeat with/.test(fault.message), repeat !== null);
    if (repeat !== null) assert.match(fault.message, repeat);
    assert.equal(it.outbound.sent.length, 1);
  });
}
