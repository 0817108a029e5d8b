// Given what a process knows of the checkpoints, when a fact comes, then what it does next and what it reports.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CheckpointFact,
  type CheckpointState,
  checkpointStatus,
  dueLook,
  evolveCheckpoints,
  NO_CHECKPOINTS,
  type StoredNote,
} from '#src/usecases/transparency/checkpoint-state.ts';

const ORIGIN = 'relay.example/receipts';
const checkpoint = (size: number, place: string | null = null, root = size): StoredNote => ({
  origin: ORIGIN,
  size,
  root: new Uint8Array(32).fill(root),
  note: `note ${size} ${root}`,
  place,
  signedAt: place === null ? `at ${size}` : null,
});
const given = (...facts: readonly CheckpointFact[]): CheckpointState =>
  facts.reduce(evolveCheckpoints, NO_CHECKPOINTS);
const begun: CheckpointFact = { kind: 'log_found', origin: ORIGIN };
const found = (...of: Parameters<typeof checkpoint>): CheckpointFact => ({
  kind: 'checkpoint_found',
  checkpoint: checkpoint(...of),
});
const compared = (
  next: 'sign' | 'rest' | 'wait' | 'refuse',
  at: number,
  position = '5',
  revision = 1n,
): CheckpointFact => ({
  kind: 'compared',
  verdict: next === 'refuse' ? { kind: next, why: 'history_cut' } : { kind: next },
  revision,
  position,
  at,
});
const signed: CheckpointFact = { kind: 'signed', position: '5' };
const projects = { position: '5', role: 'projects' } as const;
const follows = { position: '5', role: 'follows' } as const;

const LOOKS: readonly [string, readonly CheckpointFact[], Parameters<typeof dueLook>[1], number, unknown][] =
  [
    ['no log yet', [], projects, 0, null],
    ['rows that are unavailable', [begun], { ...projects, role: null }, 0, null],
    ['no rows yet', [begun], { ...projects, position: null }, 0, null],
    ['rows that were never compared', [begun], projects, 0, 'sign'],
    ['the same, of a process that follows', [begun], follows, 0, 'compare'],
    ['covered rows that stand still, however long', [begun, compared('rest', 0)], projects, 1e9, null],
    [
      'rows that lag behind the checkpoint and stand still',
      [begun, compared('wait', 0)],
      projects,
      1e9,
      null,
    ],
    ['covered rows that moved', [begun, compared('rest', 0)], { ...projects, position: '6' }, 1, 'sign'],
    ['a tree that was signed', [begun, compared('sign', 0), signed], projects, 1, null],
    ['a signature that was not stored', [begun, compared('sign', 0)], projects, 1, 'sign'],
    ['a refused tree, though nothing moves', [begun, compared('refuse', 0)], projects, 1, 'sign'],
    ['leaves that wait for another process', [begun, compared('sign', 0)], follows, 9999, 'compare'],
    ['leaves that wait for it 10 s', [begun, compared('sign', 0)], follows, 10_000, 'sign'],
    [
      'leaves that wait 10 s while the rows move on',
      [begun, compared('sign', 0), compared('sign', 9000, '6')],
      { ...follows, position: '7' },
      10_000,
      'sign',
    ],
    [
      'leaves that wait for the checkpoint after one of another process',
      [begun, compared('sign', 0), compared('sign', 9000, '6', 2n)],
      { ...follows, position: '7' },
      10_000,
      'compare',
    ],
  ];

for (const [what, facts, rows, now, then] of LOOKS) {
  test(`next look: ${what}: ${then}`, () => {
    assert.equal(dueLook(given(...facts), rows, now), then);
  });
}

const NEWEST: readonly [string, readonly CheckpointFact[], StoredNote][] = [
  ['a larger one', [found(3), found(5)], checkpoint(5)],
  ['never a smaller one of the event log', [found(5), found(3)], checkpoint(5)],
  ['never a smaller one kept elsewhere', [found(5), found(3, 'the file')], checkpoint(5)],
  ['the first of two of one size in the event log', [found(5), found(5, null, 9)], checkpoint(5)],
  ['one of its size kept elsewhere', [found(5), found(5, 'the file', 9)], checkpoint(5, 'the file', 9)],
  [
    'where it is kept, and stays as old as it was',
    [found(5), found(5, 'the file')],
    { ...checkpoint(5, 'the file'), signedAt: 'at 5' },
  ],
];

for (const [what, facts, newest] of NEWEST) {
  test(`the newest checkpoint becomes ${what}`, () => {
    assert.deepEqual(given(...facts).newest, newest);
  });
}

test('status: null before the first comparison; then how long leaves have waited, and whether the tree fits', () => {
  assert.equal(checkpointStatus(given(begun), 7), null);
  assert.deepEqual(checkpointStatus(given(compared('rest', 1)), 7), { ageMs: 0, problem: null });
  assert.deepEqual(checkpointStatus(given(compared('wait', 1)), 7), { ageMs: 0, problem: null });
  assert.deepEqual(checkpointStatus(given(compared('sign', 1)), 7), { ageMs: 6, problem: null });
  assert.deepEqual(checkpointStatus(given(compared('refuse', 1), compared('refuse', 5)), 7), {
    ageMs: 6,
    problem: 'history_cut',
  });
  assert.deepEqual(checkpointStatus(given(compared('sign', 1), signed), 7), { ageMs: 0, problem: null });
});

const read = (last: StoredNote, known: StoredNote | null): CheckpointFact => ({
  kind: 'log_read',
  last,
  known,
});

test('a checkpoint that was published and is missing from the event log is forgotten, before any comparison with rows', () => {
  const cases: readonly (readonly [CheckpointFact, boolean])[] = [
    [read(checkpoint(5), null), false],
    [read(checkpoint(5), checkpoint(5)), false],
    [read(checkpoint(6), checkpoint(5, 'the file')), false],
    [read(checkpoint(4), checkpoint(5, 'the file')), true],
    [read(checkpoint(5), checkpoint(5, 'the file', 9)), true],
  ];
  for (const [fact, forgotten] of cases) {
    const status = checkpointStatus(given(begun, fact), 7);
    assert.equal(status?.problem ?? null, forgotten ? 'checkpoint_forgotten' : null);
  }
  const restored = given(begun, read(checkpoint(4), checkpoint(5)), read(checkpoint(5), checkpoint(5)));
  assert.equal(checkpointStatus(restored, 7), null, 'the events are back');
});

test('a read of the event log that began before a checkpoint was found does not clear what a later one has found missing', () => {
  const found: CheckpointFact = { kind: 'checkpoint_found', checkpoint: checkpoint(5) };
  const state = given(begun, found, read(checkpoint(4), checkpoint(5)), read(checkpoint(4), checkpoint(4)));
  assert.equal(checkpointStatus(state, 7)?.problem, 'checkpoint_forgotten');
});
