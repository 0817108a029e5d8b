import assert from 'node:assert/strict';
import { test } from 'node:test';
import { strictestOf } from '#src/domain/signing-keys/keys.ts';
import {
  contradictionOf,
  type FoundLog,
  type LogEvidence,
  successorName,
} from '#src/domain/signing-keys/known-log.ts';

const keyFile = (id: string): LogEvidence => ({ place: 'key file', id, origin: null });
const note = (origin: string): LogEvidence => ({ place: 'note', id: null, origin });
const log = (id: string | null, origin: string | null = null): FoundLog => ({ id, origin });

const cases: readonly (readonly [
  title: string,
  found: FoundLog,
  evidence: readonly LogEvidence[],
  expected: ReturnType<typeof contradictionOf>,
])[] = [
  ['nothing is remembered of an empty log', log(null), [], null],
  ['nothing is remembered of a log', log('a', 'x'), [], null],
  ['the log in use', log('a', 'x'), [keyFile('a'), note('x')], null],
  ['an empty log beside a key file', log(null), [keyFile('a')], { is: 'empty', places: ['key file'] }],
  ['an empty log beside a checkpoint', log(null), [note('x')], { is: 'empty', places: ['note'] }],
  [
    'an empty log beside both',
    log(null),
    [keyFile('a'), note('x')],
    { is: 'empty', places: ['key file', 'note'] },
  ],
  ['another log than the key file’s', log('b'), [keyFile('a')], { is: 'other', places: ['key file'] }],
  [
    'one of two memories contradicts',
    log('a'),
    [keyFile('a'), keyFile('b')],
    { is: 'other', places: ['key file'] },
  ],
  ['another log than the checkpoint’s', log('b', 'y'), [note('x')], { is: 'other', places: ['note'] }],
  ['a checkpoint beside a log without one', log('b'), [note('x')], null],
  [
    'a checkpoint of an earlier log does not count where the id is known',
    log('a', 'y'),
    [keyFile('a'), note('x')],
    null,
  ],
];

for (const [title, found, evidence, expected] of cases)
  test(title, () => assert.deepEqual(contradictionOf(found, evidence), expected));

test('only a log after one that was given up has a name of its own', () => {
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  assert.equal(successorName({ id, earlier: 0 }), null);
  assert.equal(successorName({ id, earlier: 1 }), '0f8fad5b');
  assert.equal(successorName({ id: null, earlier: 1 }), null);
});

test('of what two files remember of a key, the earliest end counts', () => {
  const key = {
    keyId: 'k',
    purpose: 'receipt',
    x: 'x',
    notBefore: 1,
    notAfter: null,
    compromisedAt: null,
  } as const;
  const other = { ...key, keyId: 'o' };
  const ended = { ...key, notAfter: 9, compromisedAt: 5 };
  assert.deepEqual(strictestOf([key, other, ended]), [ended, other]);
  assert.deepEqual(strictestOf([ended, key]), [ended]);
});
