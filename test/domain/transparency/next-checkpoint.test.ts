import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CheckpointFacts, nextCheckpoint } from '#src/domain/transparency/checkpoint.ts';

const root = (n: number) => new Uint8Array(32).fill(n);
const last = { size: 5, root: root(5), position: '40' };
/** Rows with the last checkpoint and two more leaves. */
const rows = { size: 7, position: '60', extendsLast: true };
const facts = (changes: Partial<CheckpointFacts> = {}): CheckpointFacts => ({
  last,
  signed: true,
  known: last,
  rows,
  ...changes,
});
const GIVEN: readonly [string, CheckpointFacts, string][] = [
  ['leaves without a checkpoint, in a tree that extends the last one', facts(), 'sign'],
  ['a process that knows of no checkpoint yet', facts({ known: null }), 'sign'],
  ['one that knows of an earlier checkpoint', facts({ known: { size: 3, root: root(3) } }), 'sign'],
  ['the first leaves of all', facts({ last: { ...last, size: 0 }, known: null }), 'sign'],
  ['a tree as large as the last checkpoint', facts({ rows: { ...rows, size: 5 } }), 'rest'],
  ['rows that are behind the last checkpoint', facts({ rows: { ...rows, size: 4, position: '39' } }), 'wait'],
  ['no rows at all yet', facts({ rows: { size: 0, position: null, extendsLast: false } }), 'wait'],
  [
    'rows with the last checkpoint, but without all of its leaves',
    facts({ rows: { size: 4, position: '40', extendsLast: false } }),
    'history_cut',
  ],
  [
    'a tree that does not extend the last one',
    facts({ rows: { ...rows, extendsLast: false } }),
    'history_rewritten',
  ],
  [
    'a tree as large as the last one, and another',
    facts({ rows: { ...rows, size: 5, extendsLast: false } }),
    'history_rewritten',
  ],
  ['a last checkpoint that no key of the relay signed', facts({ signed: false }), 'checkpoint_not_signed'],
  ['a last checkpoint that cannot be read', facts({ last: null }), 'checkpoint_unreadable'],
  [
    'a log that ends before a checkpoint that was given out',
    facts({ known: { size: 6, root: root(6) } }),
    'checkpoint_forgotten',
  ],
  [
    'a log with another checkpoint of a size that was given out',
    facts({ known: { size: 5, root: root(6) } }),
    'checkpoint_forgotten',
  ],
  [
    'a forgotten checkpoint, however well the rest fits',
    facts({ known: { size: 8, root: root(8) }, rows: { ...rows, size: 5 } }),
    'checkpoint_forgotten',
  ],
];

for (const [given, when, then] of GIVEN) {
  test(`next checkpoint: ${given}: ${then}`, () => {
    const next = nextCheckpoint(when);
    const refused = !['sign', 'rest', 'wait'].includes(then);
    assert.deepEqual(next, refused ? { kind: 'refuse', why: then } : { kind: then });
  });
}
