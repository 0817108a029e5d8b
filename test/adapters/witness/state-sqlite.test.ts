// The state of a witness in SQLite, on both runtimes: compared and stored in one transaction, by several connections.
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openWitnessState } from '#src/adapters/witness/state-sqlite.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { c2spCheckpointText, c2spKey, c2spNote } from '#test/support/witness/c2sp.ts';

const folder = testFolder('witness-state');
const key = c2spKey('log.example/receipts', 1);
function of(size: number, name = `root ${size}`) {
  const root = sha256(name);
  return { size, root, note: c2spNote(c2spCheckpointText(ORIGIN, size, Buffer.from(root)), key) };
}
const ORIGIN = 'log.example/receipts';
const HASH = Buffer.from(sha256(ORIGIN)).toString('hex');

test('it returns what was stored, by origin and by hash, also after it was opened again', async () => {
  const file = join(folder, 'a.state');
  const state = await openWitnessState(file);
  assert.deepEqual([await state.find(ORIGIN), await state.findByHash(HASH)], [null, null]);
  assert.equal(await state.replace(ORIGIN, null, of(3)), true);
  state.close();
  const again = await openWitnessState(file);
  assert.deepEqual([await again.find(ORIGIN), await again.findByHash(HASH)], [of(3), of(3)]);
  assert.equal(await again.find('other.example'), null);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  again.close();
});

test('it is stored only where the last one is the expected one, by size and root', async () => {
  const state = await openWitnessState(join(folder, 'b.state'));
  await state.replace(ORIGIN, null, of(3));
  for (const last of [null, of(2), of(4), of(3, 'another')])
    assert.equal(await state.replace(ORIGIN, last, of(9)), false);
  assert.equal(await state.replace(ORIGIN, of(3), of(9)), true);
  assert.equal((await state.find(ORIGIN))?.size, 9);
  state.close();
});

test('of many connections that replace the same one, exactly one does', async () => {
  const file = join(folder, 'c.state');
  const states = await Promise.all(Array.from({ length: 10 }, () => openWitnessState(file)));
  const done = await Promise.all(states.map((state, n) => state.replace(ORIGIN, null, of(n + 1))));
  assert.equal(done.filter((one) => one).length, 1);
  const stored = await states[0]?.find(ORIGIN);
  assert.equal(stored?.size, done.indexOf(true) + 1);
  for (const state of states) state.close();
});

test('a file that is no state, or of another program, is refused and left as it is', async () => {
  const text = join(folder, 'text.state');
  writeFileSync(text, 'a text that is long enough to be no database, and no header of one'.repeat(20));
  await assert.rejects(openWitnessState(text), /is damaged, or not a database: do not restore an older copy/);
  const foreign = join(folder, 'foreign.state');
  const db = new DatabaseSync(foreign);
  db.exec('CREATE TABLE other (one)');
  db.close();
  await assert.rejects(openWitnessState(foreign), /is a database, but not the state of a witness/);
});
