// What a witness accepts: the body of add-checkpoint line by line, and which tree head follows which.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judgeSubmission, parseSubmission, type Submission } from '#src/domain/transparency/witness.ts';
import { c2spNote, c2spRoot, c2spSubmission } from '#test/support/witness/c2sp.ts';
import { C2spLog } from '#test/support/witness/c2sp-log.ts';

const log = new C2spLog('log.example').grow(7);
const bytes = (text: string) => Uint8Array.from(Buffer.from(text));
const parsed = (body: string): Submission => {
  const { submission, problem } = parseSubmission(bytes(body));
  return submission ?? assert.fail(problem);
};

describe('a submission', () => {
  /** tlog-witness, the example of add-checkpoint. */
  const EXAMPLE = `old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
`;
  test('the example of the standard is read', () => {
    const { oldSize, proof, note, head } = parsed(EXAMPLE);
    assert.deepEqual(
      [oldSize, proof.length, note.signatures.length, head.origin, head.size],
      [20852014, 4, 2, 'example.com/behind-the-sofa', 20852163],
    );
  });
  test('without a proof, the empty line follows the old size', () => {
    assert.deepEqual(parsed(log.submission(0)).proof, []);
  });
  test('extension lines belong to the checkpoint', () => {
    const text = `${log.text()}extension\n`;
    assert.equal(parsed(c2spSubmission(0, [], c2spNote(text, log.key))).note.text, text);
  });
  test('63 proof lines are read, 64 are not', () => {
    const lines = (count: number) => Array.from({ length: count }, () => Buffer.alloc(32));
    assert.equal(parsed(c2spSubmission(1, lines(63), log.checkpoint())).proof.length, 63);
    assert.match(problemOf(c2spSubmission(1, lines(64), log.checkpoint())), /more than 63 lines/);
  });
  test('16 signatures are read, 65 are not', () => {
    const signed = (count: number) => log.checkpoint() + more(count);
    const more = (count: number) =>
      Array.from({ length: count - 1 }, () => `— x ${'A'.repeat(88)}\n`).join('');
    assert.equal(parsed(c2spSubmission(0, [], signed(16))).note.signatures.length, 16);
    assert.match(problemOf(c2spSubmission(0, [], signed(65))), /more than 64 signatures/);
  });

  const problemOf = (body: string | Uint8Array): string => {
    const { problem } = parseSubmission(typeof body === 'string' ? bytes(body) : body);
    return problem ?? assert.fail('a submission');
  };
  const good = log.submission(3);
  const malformed: Readonly<Record<string, readonly [body: string | Uint8Array, problem: RegExp]>> = {
    empty: ['', /no empty line/],
    'only line ends': ['\n\n\n', /first line/],
    'without the old size': [good.slice(good.indexOf('\n') + 1), /first line/],
    'with another word for it': [good.replace('old', 'Old'), /first line/],
    'with a tab after it': [good.replace('old ', 'old\t'), /first line/],
    'with two blanks': [good.replace('old ', 'old  '), /first line/],
    'with a leading zero': [good.replace('old 3', 'old 03'), /first line/],
    'with a sign': [good.replace('old 3', 'old +3'), /first line/],
    'with no number': [good.replace('old 3', 'old x'), /first line/],
    'with a size beyond 2^53': [good.replace('old 3', 'old 9007199254740993'), /first line/],
    'with carriage returns': [good.replaceAll('\n', '\r\n'), /no empty line/],
    'with a proof line of 31 bytes': [c2spSubmission(3, [Buffer.alloc(31)], log.checkpoint()), /32 bytes/],
    'with a proof line that is no base64': [good.replace(/\n.*\n/, '\n!\n'), /32 bytes/],
    'with an unpadded proof line': [good.replace('=\n', '\n'), /32 bytes/],
    'without an empty line': [good.replaceAll('\n\n', '\n'), /no empty line/],
    'without a checkpoint': [good.slice(0, good.indexOf('\n\n') + 2), /no checkpoint/],
    'without a signature': [good.slice(0, good.lastIndexOf('\n\n') + 2), /no checkpoint/],
    'without its last line end': [good.slice(0, -1), /no checkpoint/],
    'with a checkpoint of two lines': [
      c2spSubmission(0, [], c2spNote('log.example\n3\n', log.key)),
      /no checkpoint/,
    ],
    'with a root that is no hash': [
      c2spSubmission(0, [], c2spNote('log.example\n3\nAAAA\n', log.key)),
      /no checkpoint/,
    ],
    'that is not UTF-8': [Uint8Array.of(0x6f, 0xff, 0x0a), /UTF-8/],
  };
  for (const [title, [body, problem]] of Object.entries(malformed))
    test(`is malformed ${title}`, () => assert.match(problemOf(body), problem));
});

describe('given what was cosigned last, a submission', () => {
  const last = { size: 3, root: Uint8Array.from(c2spRoot(log.leaves.slice(0, 3))) };
  const judge = (body: string, given: typeof last | null = last) => judgeSubmission(parsed(body), given);
  const fork = log.forked(2);

  test('is cosigned if it extends it', () => {
    for (const size of [4, 5, 6, 7]) assert.equal(judge(log.submission(3, size)), null);
    for (const size of [1, 2, 7]) assert.equal(judge(log.submission(0, size), null), null);
  });
  test('is cosigned again if it is the same', () => assert.equal(judge(log.submission(3, 3)), null));
  test('is cosigned if both are empty', () => {
    assert.equal(judge(log.submission(0, 0), null), null);
    const empty = { size: 0, root: Uint8Array.from(c2spRoot([])) };
    assert.equal(judge(log.submission(0, 7), empty), null);
  });
  test('conflicts with any other old size, and the last size is stated', () => {
    for (const old of [0, 1, 2, 4, 7])
      assert.deepEqual(judge(log.submission(old)), { kind: 'conflict', size: 3 });
    assert.deepEqual(judge(log.submission(3), null), { kind: 'conflict', size: 0 });
  });
  test('is malformed if the old size is above its own', () => {
    assert.deepEqual(judge(c2spSubmission(3, [], log.checkpoint(2))), { kind: 'too_old' });
    assert.deepEqual(judge(c2spSubmission(9, [], log.checkpoint(7))), { kind: 'too_old' });
  });
  test('shows a fork if it has the same size and another root', () => {
    assert.deepEqual(judge(fork.submission(3, 3)), { kind: 'forked' });
  });
  test('has a wrong root if it has no leaves and another root than no leaves have, whatever was cosigned last', () => {
    const other = c2spNote(`${log.key.name}\n0\n${Buffer.alloc(32).toString('base64')}\n`, log.key);
    const empty = { size: 0, root: Uint8Array.from(c2spRoot([])) };
    for (const given of [null, empty])
      assert.deepEqual(judge(c2spSubmission(0, [], other), given), { kind: 'wrong_empty_root' });
  });
  test('is inconsistent with the tree of a fork, a proof of other sizes, a changed proof, or none', () => {
    const [first = Buffer.alloc(0), ...more] = proofOf(log, 3, 7);
    const bodies = [
      fork.submission(3),
      c2spSubmission(3, proofOf(log, 2, 7), log.checkpoint()),
      c2spSubmission(3, proofOf(log, 3, 6), log.checkpoint()),
      c2spSubmission(3, [], log.checkpoint()),
      c2spSubmission(3, more, log.checkpoint()),
      c2spSubmission(3, [first, ...more, first], log.checkpoint()),
      c2spSubmission(3, [Buffer.from(first.map((byte) => byte ^ 1)), ...more], log.checkpoint()),
      c2spSubmission(3, [first], log.checkpoint(3)),
    ];
    for (const body of bodies) assert.deepEqual(judge(body), { kind: 'inconsistent' }, body.slice(0, 60));
    assert.deepEqual(judge(c2spSubmission(0, [first], log.checkpoint()), null), { kind: 'inconsistent' });
  });
});

/** The hashes of the submission's proof. */
const proofOf = (from: C2spLog, old: number, size: number): readonly Buffer[] =>
  parsed(from.submission(old, size)).proof.map((hash) => Buffer.from(hash));
