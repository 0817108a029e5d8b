import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TIMES } from '#src/domain/limits.ts';
import { claimKey, releaseKey, retentionOver } from '#src/domain/payment/claim.ts';
import { givenClaim } from '#test/support/given/given.ts';
import { at, JOB_ID, keyClaimed, keyReleased, OTHER_JOB_ID, T0 } from '#test/support/given/given-events.ts';

const { v: _, ...facts } = keyClaimed({ claimedAt: at(9) }).data;
const mine = keyClaimed({ claimedAt: at(9) });
const others = keyClaimed({ jobId: OTHER_JOB_ID });

test('a free key is claimed', () => {
  givenClaim()
    .when((claim) => claimKey(facts, null, claim))
    .thenEvents(mine);
});

test('a key that this very job holds is held: nothing to append', () => {
  givenClaim(keyClaimed())
    .when((claim) => claimKey(facts, null, claim))
    .thenEvents();
});

test('a key whose claim has ended is claimed again, also by the job that held it', () => {
  givenClaim(keyClaimed())
    .when((claim) => claimKey(facts, 'payment_rejected', claim))
    .thenEvents(keyReleased(), mine);
});

test('a held key is lost to its holder, whatever its age', () => {
  givenClaim(others)
    .when((claim) => claimKey({ ...facts, claimedAt: at(400 * 86_400_000) }, null, claim))
    .thenAnswer({ kind: 'lost', holder: others.data });
});

for (const reason of ['payment_rejected', 'payment_released', 'retention_over'] as const) {
  test(`a held key is taken after its holder's release: ${reason}`, () => {
    givenClaim(others)
      .when((claim) => claimKey(facts, reason, claim))
      .thenEvents(keyReleased({ jobId: OTHER_JOB_ID, reason }), mine);
  });
}

test('a released key is free for anyone', () => {
  givenClaim(others, keyReleased({ jobId: OTHER_JOB_ID }))
    .when((claim) => claimKey(facts, null, claim))
    .thenEvents(mine);
});

test("another job's release frees nothing", () => {
  givenClaim(others, keyReleased({ jobId: JOB_ID }))
    .when((claim) => claimKey(facts, null, claim))
    .thenAnswer({ kind: 'lost', holder: others.data });
});

test('a second claim on a held key changes nothing', () => {
  assert.deepEqual(givenClaim(others, mine).state, givenClaim(others).state);
});

test('a release of a free key changes nothing', () => {
  assert.deepEqual(givenClaim(keyReleased()).state, givenClaim().state);
});

test('a release names the job and the reason', () => {
  assert.deepEqual(releaseKey(JOB_ID, 'payment_rejected', at(9)), keyReleased());
});

test('a key frees 7 days after completion, not a millisecond earlier', () => {
  const end = T0 + 7 * 86_400_000;
  assert.equal(TIMES.idempotencyRetentionMs, 7 * 86_400_000);
  assert.equal(retentionOver(at(0), end - 1), false);
  assert.equal(retentionOver(at(0), end), true);
});
