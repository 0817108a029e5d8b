// A rotation of the checkpoint key: checkpoints carry both signatures, so that witnesses which know one of the keys cosign.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replacedKeysThatSign } from '#src/domain/signing-keys/keys.ts';
import { verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { parseNote } from '#src/domain/transparency/note.ts';
import { primitives, testKey } from '#test/support/given/primitives.ts';
import { deployment, keeper, ORIGIN, receipt } from '#test/support/world/receipt-log-world.ts';
import { asker, reached, roundTexts } from '#test/support/world/witnessed-world.ts';

/** A deployment whose witnesses know `common.key`; the process signs with another one now. */
async function rotated(quorum = 2) {
  const common = deployment();
  const fresh = testKey({ purpose: 'checkpoint' });
  const holder: { accept(key: string): boolean } = { accept: () => false };
  const asked: boolean[] = [];
  const it = await keeper(common, {
    keys: [common.key, fresh],
    witnesses: { accept: (key) => holder.accept(key) },
    replacedBy(keyId, isAccepted) {
      asked.push(isAccepted);
      return keyId === fresh.keyId ? [common.key] : [];
    },
  });
  const witnesses = reached(common, 2, () => it.clock.now());
  const process = await asker(common, witnesses, quorum, { it });
  holder.accept = (key) => process.asking.accept(key);
  it.held.key = fresh;
  asked.splice(0);
  async function round() {
    await receipt(common);
    assert.equal(await it.look(), 'signed');
    await process.look();
  }
  const signaturesOf = () => parseNote(it.checkpoints.latest()?.note ?? '')?.signatures.length;
  return { ...process, common, fresh, it, witnesses, asked, round, signaturesOf };
}

test('the newest key signs first, and the note verifies by either key alone', async () => {
  const { common, fresh, it, round, signaturesOf } = await rotated();
  await round();
  assert.equal(signaturesOf(), 2);
  const note = it.checkpoints.latest()?.note ?? '';
  for (const keys of [[common.key, fresh], [fresh], [common.key]]) {
    const signed = await verifySignedCheckpoint(
      note,
      keys.map(({ record }) => record),
      primitives,
    );
    assert.equal(signed?.keyId, keys.at(-1)?.keyId);
  }
  const event = common.log.events.findLast(({ type }) => type === 'CheckpointSigned');
  assert.equal(event?.data.keyId, fresh.keyId);
});

test('a compromised key verifies nothing, and does not spoil what the other one has signed', async () => {
  const { common, fresh, it, round } = await rotated();
  await round();
  const bad = { ...common.key.record, compromisedAt: 1 };
  const note = it.checkpoints.latest()?.note ?? '';
  assert.equal((await verifySignedCheckpoint(note, [bad, fresh.record], primitives))?.keyId, fresh.keyId);
  assert.equal(await verifySignedCheckpoint(note, [bad], primitives), null);
});

test('a witness that does not know the newest key cosigns by the one that it has replaced', async () => {
  const { common, witnesses, asking, round, asked } = await rotated();
  await round();
  await round();
  assert.deepEqual(roundTexts(common), ['1: w1 w2', '2: w1 w2']);
  // Given the newest key alone once, refused with 403, and then with both.
  assert.equal(witnesses[0]?.standard.asked.length, 3);
  assert.deepEqual(asked, [false, false]);
  assert.equal(asking.status().witnesses[0]?.refusal, null);
});

test('the replaced key is needed until each witness has accepted the newest one alone', async () => {
  const { it, fresh, witnesses, round, asked } = await rotated();
  await round();
  witnesses[0]?.standard.know(ORIGIN, fresh.x);
  it.clock.advance(600_000);
  await round();
  await round();
  assert.deepEqual(asked, [false, false, false]);
  witnesses[1]?.standard.know(ORIGIN, fresh.x);
  it.clock.advance(600_000);
  await round();
  await round();
  assert.deepEqual(asked, [false, false, false, false, true]);
});

test('two rotations, the last more than 30 days ago: a witness that knows only the first key cosigns', async () => {
  const common = deployment();
  const [second, newest] = [testKey({ purpose: 'checkpoint' }), testKey({ purpose: 'checkpoint' })];
  const keys = [common.key, second, newest];
  const held = keys.map((key) => ({ ...key, purpose: 'checkpoint', status: 'active' as const }));
  const records = keys.map(({ record }, n) => ({
    ...record,
    purpose: 'checkpoint' as const,
    notAfter: n === 2 ? null : n,
  }));
  const holder: { accept(key: string): boolean } = { accept: () => false };
  const it = await keeper(common, {
    keys,
    witnesses: { accept: (key) => holder.accept(key) },
    replacedBy: (keyId, isAccepted) =>
      replacedKeysThatSign(held, records, keyId, 400 * 86_400_000, isAccepted),
  });
  const witnesses = reached(common, 2, () => it.clock.now());
  witnesses[0]?.standard.know(ORIGIN, newest.x);
  const { asking, look } = await asker(common, witnesses, 2, { it });
  holder.accept = (key) => asking.accept(key);
  it.held.key = newest;
  for (let n = 0; n < 2; n++) {
    await receipt(common);
    assert.equal(await it.look(), 'signed');
    await look();
  }
  assert.deepEqual(roundTexts(common), ['1: w1 w2', '2: w1 w2']);

  witnesses[1]?.standard.know(ORIGIN, newest.x);
  it.clock.advance(600_000);
  for (let n = 0; n < 2; n++) {
    await receipt(common);
    assert.equal(await it.look(), 'signed');
    await look();
  }
  const note = parseNote(it.checkpoints.latest()?.note ?? '');
  assert.equal(note?.signatures.length, 1, 'each witness has accepted the newest key');
});
