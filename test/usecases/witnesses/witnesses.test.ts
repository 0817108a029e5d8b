// The relay asks its witnesses: what is recorded, when, and what a witness can and cannot do to it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseNote } from '#src/domain/transparency/note.ts';
import { cosignaturesOf } from '#src/domain/transparency/witness-policy.ts';
import type { AddCheckpointRequest, WitnessAnswer } from '#src/ports/witness.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { Crash, dies, lostAnswer } from '#test/support/log/fakes-log.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { ORIGIN, receipt, sizes } from '#test/support/world/receipt-log-world.ts';
import {
  asker,
  INTERVAL_MS,
  type ReachedWitness,
  reached,
  rounds,
  roundTexts,
  witnessed,
} from '#test/support/world/witnessed-world.ts';

const HOUR_S = 3600;

/** One receipt more, and a checkpoint over it. */
async function grow({ common, it }: Pick<Awaited<ReturnType<typeof witnessed>>, 'common' | 'it'>) {
  await receipt(common);
  assert.equal(await it.look(), 'signed');
}

const oldsOf = ({ standard }: ReachedWitness) => standard.asked.map((body) => body.split('\n')[0]);
const first = (witnesses: readonly ReachedWitness[]): ReachedWitness => witnesses[0] as ReachedWitness;

describe('rounds', () => {
  test('the newest checkpoint is cosigned by all at once, from what each has seen last', async () => {
    const it = await witnessed();
    for (let n = 0; n < 3; n++) {
      await grow(it);
      await it.look();
    }
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '2: w1 w2 w3', '3: w1 w2 w3']);
    for (const witness of it.witnesses) assert.deepEqual(oldsOf(witness), ['old 0', 'old 1', 'old 2']);
  });

  test('what is recorded verifies: the checkpoint as the log signed it, and each cosignature', async () => {
    const it = await witnessed();
    await grow(it);
    await it.look();
    const note = parseNote(it.asking.latest() ?? '');
    assert.ok(note !== null);
    const { valid } = await cosignaturesOf(note, it.policy, primitives);
    assert.deepEqual(
      valid.map(({ name, time }) => [name, time]),
      ['w1', 'w2', 'w3'].map((name) => [name, Math.floor(it.it.clock.now() / 1000)]),
    );
    assert.equal(note.signatures.length, 4, 'the log and three witnesses');
    assert.equal(rounds(it.common)[0]?.data.quorum, 'q');
  });

  test('they are asked every interval while the log grows, and not at all while it stands still', async () => {
    const it = await witnessed();
    const running = it.run();
    for (let n = 0; n < 30; n++) {
      await grow(it);
      await it.seconds(1);
    }
    assert.deepEqual(
      roundTexts(it.common).map((text) => Number.parseInt(text, 10)),
      [0, 10, 20, 30],
    );
    const asked = first(it.witnesses).standard.asked.length;
    await it.seconds(600);
    assert.equal(first(it.witnesses).standard.asked.length, asked);
    it.stopping.abort();
    await running;
  });

  test('an idle log is cosigned again after six hours, so that its time stays fresh', async () => {
    const it = await witnessed();
    await grow(it);
    await it.look();
    const begun = it.it.clock.now();
    it.it.clock.advance(6 * HOUR_S * 1000 - 1);
    await it.look();
    assert.equal(rounds(it.common).length, 1);
    it.it.clock.advance(1);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '1: w1 w2 w3']);
    const [line] = (rounds(it.common)[1]?.data.cosignatures ?? []) as { time: number }[];
    assert.equal(line?.time, (begun + 6 * HOUR_S * 1000) / 1000);
  });

  test('a quorum is enough, without one nothing is recorded; a witness that comes later completes the round', async () => {
    const it = await witnessed();
    const [one, two] = it.witnesses as [ReachedWitness, ReachedWitness];
    const away = (): WitnessAnswer => ({ kind: 'failed', why: 'unreachable' });
    one.lie = away;
    await grow(it);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w2 w3']);
    two.lie = away;
    await grow(it);
    await it.look();
    assert.equal(rounds(it.common).length, 1);
    assert.equal(it.asking.status().lagSeconds, 0);
    two.lie = null;
    it.it.clock.advance(INTERVAL_MS);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w2 w3', '2: w2 w3']);
    assert.equal(
      it.witnesses[2]?.standard.asked.length,
      2,
      'one that has cosigned the checkpoint is not asked again',
    );
  });

  test('rows that lag or are of another tree: no witness is asked', async () => {
    const it = await witnessed();
    await grow(it);
    it.it.rows.projected = 1;
    await it.look();
    assert.equal(first(it.witnesses).standard.asked.length, 0);
    it.it.rows.projected = Number.POSITIVE_INFINITY;
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
  });
});

describe('processes', () => {
  test('killed between the answers and the record: the next process records the round', async () => {
    for (const when of ['before', 'after'] as const) {
      const it = await witnessed();
      await grow(it);
      it.common.log.onNext('CheckpointCosigned', dies(when));
      await assert.rejects(it.look(), Crash);
      const next = await asker(it.common, it.witnesses, 2, { it: it.it });
      await next.look();
      await next.look();
      assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3'], when);
      assert.notEqual(next.asking.latest(), null);
    }
  });

  test('an append whose answer was lost is one event', async () => {
    const it = await witnessed();
    await grow(it);
    it.common.log.onNext('CheckpointCosigned', lostAnswer);
    await letPass(it.it.clock, it.look());
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
  });

  test('a restart asks once at once, from what is recorded, and records nothing that is', async () => {
    const it = await witnessed();
    await grow(it);
    await it.look();
    const next = await asker(it.common, it.witnesses, 2, { it: it.it });
    await next.look();
    await next.look();
    assert.deepEqual(oldsOf(first(it.witnesses)), ['old 0', 'old 1']);
    assert.equal(rounds(it.common).length, 1);
  });

  test('two processes that ask the same witnesses at once end with one event a checkpoint', async () => {
    const it = await witnessed();
    const other = await asker(it.common, it.witnesses, 2);
    for (let n = 0; n < 5; n++) {
      await grow(it);
      await other.it.look();
      await Promise.all([it.look(), other.look()]);
      await Promise.all([it.look(), other.look()]);
    }
    assert.deepEqual(
      roundTexts(it.common).map((text) => Number.parseInt(text, 10)),
      [1, 2, 3, 4, 5],
    );
    assert.equal(it.asking.latest(), other.asking.latest());
  });

  test('a process that follows asks once, and then not until a checkpoint has waited a minute', async () => {
    const it = await witnessed();
    it.it.rows.role = 'follows';
    await grow(it);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
    await grow(it);
    await it.look();
    it.it.clock.advance(59_999);
    await it.look();
    assert.equal(first(it.witnesses).standard.asked.length, 1);
    it.it.clock.advance(1);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '2: w1 w2 w3']);
  });

  test('a follower has what another process has recorded', async () => {
    const it = await witnessed();
    const other = await asker(it.common, it.witnesses, 2);
    other.it.rows.role = 'follows';
    await grow(it);
    await it.look();
    await other.look();
    assert.equal(other.asking.latest(), it.asking.latest());
  });

  test('another policy since: what is recorded stays as it is, under its own names', async () => {
    const it = await witnessed();
    await grow(it);
    await it.look();
    const before = it.asking.latest();
    const others = reached(it.common, 1, () => it.it.clock.now());
    const next = await asker(it.common, others, 1, { it: it.it });
    assert.equal(next.asking.latest(), before);
    await grow(it);
    await next.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '2: w1']);
    assert.equal(next.asking.status().configured, 1);
  });
});

describe('a witness that lies, or does not answer', () => {
  const other = new C2spWitness({ name: 'witness.example/w1' });
  const textOf = ({ checkpoint }: AddCheckpointRequest) =>
    checkpoint.slice(0, checkpoint.lastIndexOf('\n\n') + 1);

  /** What the first witness answers, and why it counts for nothing. */
  const LIES: Readonly<
    Record<
      string,
      readonly [(it: C2spWitness, given: AddCheckpointRequest, now: number) => WitnessAnswer, string]
    >
  > = {
    'a size that is smaller each time': [
      (_, { old }) => ({ kind: 'conflict', size: Math.max(0, old - 1) }),
      'contradicts_itself',
    ],
    'the size that it was given': [(_, { old }) => ({ kind: 'conflict', size: old }), 'contradicts_itself'],
    garbage: [() => ({ kind: 'cosigned', lines: '<html></html>\n' }), 'malformed'],
    nothing: [() => ({ kind: 'cosigned', lines: '' }), 'malformed'],
    'a line of an unknown key of its name': [
      (_, given) => ({ kind: 'cosigned', lines: other.cosign(textOf(given)) }),
      'no_cosignature',
    ],
    'its cosignature of another log': [
      (it) => ({ kind: 'cosigned', lines: it.cosign('other.example/log\n1\nAAAA\n') }),
      'invalid_cosignature',
    ],
    'its cosignature of another size': [
      (it, given) => ({ kind: 'cosigned', lines: it.cosign(textOf(given).replace(/\n\d+\n/, '\n70\n')) }),
      'invalid_cosignature',
    ],
    'a time of next year': [
      (it, given, now) => ({ kind: 'cosigned', lines: it.cosign(textOf(given), now + 365 * 86_400) }),
      'wrong_time',
    ],
    'a time of 1970': [
      (it, given) => ({ kind: 'cosigned', lines: it.cosign(textOf(given), 1) }),
      'wrong_time',
    ],
    'a time six minutes ago': [
      (it, given, now) => ({ kind: 'cosigned', lines: it.cosign(textOf(given), now - 360) }),
      'wrong_time',
    ],
    'a gigabyte': [() => ({ kind: 'failed', why: 'oversized' }), 'oversized'],
    'no end': [() => ({ kind: 'failed', why: 'timeout' }), 'timeout'],
    'a redirect': [() => ({ kind: 'failed', why: 'redirected' }), 'redirected'],
    'an origin that it does not know': [() => ({ kind: 'refused', status: 404 }), 'http_404'],
    'a key that it does not know': [() => ({ kind: 'refused', status: 403 }), 'http_403'],
    'a proof that does not hold': [() => ({ kind: 'refused', status: 422 }), 'http_422'],
  };
  for (const [name, [lie, reason]] of Object.entries(LIES))
    test(`${name}: it is named once, and the others are enough`, async () => {
      const it = await witnessed();
      const liar = first(it.witnesses);
      liar.lie = (given) => lie(liar.standard, given, Math.floor(it.it.clock.now() / 1000));
      await grow(it);
      await it.look();
      it.it.clock.advance(INTERVAL_MS);
      await grow(it);
      await it.look();
      assert.deepEqual(roundTexts(it.common), ['1: w2 w3', '2: w2 w3']);
      assert.equal(it.asking.status().witnesses[0]?.refusal, reason);
      assert.deepEqual(
        it.it.logger.lines.map(({ level, fields }) => [level, fields]),
        [['warn', { witness: 'w1', reason, condition: 'refusing' }]],
      );
      assert.equal(it.it.checkpoints.isWhole(), true);
      liar.lie = null;
      it.it.clock.advance(INTERVAL_MS * 2);
      await grow(it);
      await it.look();
      assert.equal(roundTexts(it.common).at(-1), '3: w1 w2 w3');
      assert.equal(it.asking.status().witnesses[0]?.refusal, null);
    });

  test('lines of unknown keys beside its own are ignored, and not recorded', async () => {
    const it = await witnessed();
    const one = first(it.witnesses);
    one.lie = (given) => ({
      kind: 'cosigned',
      lines: other.cosign('x\n') + one.standard.cosign(textOf(given)),
    });
    await grow(it);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
  });

  test('one that never answers delays no checkpoint; the others are not asked for others meanwhile', async () => {
    const it = await witnessed();
    first(it.witnesses).lie = () => new Promise(() => undefined);
    await grow(it);
    void it.look();
    await quiet();
    await grow(it);
    await grow(it);
    assert.deepEqual(sizes(it.common), [0, 1, 2, 3]);
    assert.equal(it.it.checkpoints.isWhole(), true);
  });

  test('away for a day: it is asked less and less, at least every ten minutes, and then completes the quorum', async () => {
    const it = await witnessed({ quorum: 3 });
    const away = first(it.witnesses);
    const at: number[] = [];
    away.lie = () => {
      at.push(it.it.clock.monotonic());
      return { kind: 'failed', why: 'unreachable' };
    };
    await grow(it);
    const day = (HOUR_S * 24 * 1000) / INTERVAL_MS;
    for (let n = 0; n < day; n++) {
      await it.look();
      it.it.clock.advance(INTERVAL_MS);
    }
    const pauses = at.slice(1).map((time, n) => (time - (at[n] ?? 0)) / 1000);
    assert.deepEqual(pauses.slice(0, 8), [10, 20, 40, 80, 160, 320, 600, 600]);
    assert.equal(Math.max(...pauses), 600);
    assert.equal(it.witnesses[1]?.standard.asked.length, 1);
    assert.deepEqual([rounds(it.common).length, it.asking.status().lagSeconds], [0, HOUR_S * 24]);
    away.lie = null;
    it.it.clock.advance(600_000);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
    assert.equal(it.it.logger.lines.length, 2, 'away, and back');
  });
});

test('a witness that has forgotten what it has cosigned is logged, and cosigns again', async () => {
  const it = await witnessed();
  const one = first(it.witnesses);
  await grow(it);
  await it.look();
  await grow(it);
  it.it.clock.advance(INTERVAL_MS);
  one.standard.forget();
  await it.look();
  assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '2: w1 w2 w3']);
  assert.deepEqual(
    it.it.logger.lines.map(({ level, fields }) => [level, fields]),
    [['warn', { witness: 'w1', cosigned: 1, states: 0 }]],
  );
});

test('a witness that replays its last cosignature: it is of another checkpoint', async () => {
  const it = await witnessed();
  const one = first(it.witnesses);
  let replayed = '';
  one.lie = (given) => {
    if (replayed === '')
      replayed = one.standard.cosign(given.checkpoint.slice(0, given.checkpoint.lastIndexOf('\n\n') + 1));
    return { kind: 'cosigned', lines: replayed };
  };
  for (let n = 0; n < 2; n++) {
    await grow(it);
    await it.look();
    it.it.clock.advance(INTERVAL_MS);
  }
  assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3', '2: w2 w3']);
  assert.equal(it.asking.status().witnesses[0]?.refusal, 'invalid_cosignature');
});

describe('a witness that hangs while the others are a quorum', () => {
  const COSIGNED = { kind: 'cosigned', lines: '' } as const;
  /** The first witness answers when the test says so: what, or the truth. */
  function hanging(it: Awaited<ReturnType<typeof witnessed>>) {
    const open: ((answer: WitnessAnswer) => void)[] = [];
    first(it.witnesses).lie = () => new Promise((resolve) => open.push(resolve));
    return open;
  }

  /** Resolves when it holds, while no time passes. */
  async function come(holds: () => boolean): Promise<void> {
    while (!holds()) await quiet();
  }

  test('the round is recorded two seconds after the quorum, and the next one is asked for meanwhile', async () => {
    const it = await witnessed();
    const open = hanging(it);
    const { clock } = it.it;
    await grow(it);
    const running = it.run();
    // Signatures are verified in real time.
    const quorums = (n: number) => come(() => clock.slept.filter((ms) => ms === 2000).length === n);
    await quorums(1);
    await it.seconds(1);
    assert.deepEqual([open.length, roundTexts(it.common)], [1, []]);
    await it.seconds(1);
    await come(() => rounds(it.common).length === 1);
    await grow(it);
    await come(() => clock.slept.includes(INTERVAL_MS));
    await it.seconds(INTERVAL_MS / 1000);
    await quorums(2);
    await it.seconds(2);
    await come(() => rounds(it.common).length === 2);
    assert.deepEqual(roundTexts(it.common), ['1: w2 w3', '2: w2 w3']);
    assert.equal(open.length, 1, 'it is not asked a second time before it has answered');
    it.stopping.abort();
    open[0]?.({ kind: 'failed', why: 'stopped' });
    await running;
    assert.deepEqual(it.it.logger.lines, []);
  });

  test('its late answer is known to the next round, and adds nothing to the recorded one', async () => {
    const it = await witnessed();
    const one = first(it.witnesses);
    const open = hanging(it);
    await grow(it);
    const given: AddCheckpointRequest[] = [];
    const hang = one.lie;
    one.lie = (submission) => {
      given.push(submission);
      return hang?.(submission) ?? COSIGNED;
    };
    await letPass(it.it.clock, it.look());
    assert.deepEqual(roundTexts(it.common), ['1: w2 w3']);
    one.lie = null;
    assert.equal(it.asking.status().witnesses[0]?.cosignedAt, null);
    open[0]?.(await one.port.addCheckpoint(given[0] as AddCheckpointRequest));
    await come(() => it.asking.status().witnesses[0]?.cosignedAt !== null);
    assert.equal(rounds(it.common).length, 1);
    await grow(it);
    await it.look();
    assert.deepEqual(roundTexts(it.common), ['1: w2 w3', '2: w1 w2 w3']);
    assert.deepEqual(oldsOf(one), ['old 0', 'old 1'], 'its size was learnt from the late answer');
  });

  test('answers within the two seconds are recorded with the others, and the round takes no longer', async () => {
    const it = await witnessed();
    const one = first(it.witnesses);
    one.lie = async (submission) => {
      await it.it.clock.sleep(1900);
      one.lie = null;
      return one.port.addCheckpoint(submission);
    };
    await grow(it);
    await letPass(it.it.clock, it.look());
    assert.equal(it.it.clock.monotonic(), 1900);
    assert.deepEqual(roundTexts(it.common), ['1: w1 w2 w3']);
  });

  test('a late refusal is named; a fault behind a recorded round is logged', async () => {
    const it = await witnessed();
    const open = hanging(it);
    await grow(it);
    await letPass(it.it.clock, it.look());
    open[0]?.({ kind: 'failed', why: 'timeout' });
    await come(() => it.asking.status().witnesses[0]?.refusal === 'timeout');
    await grow(it);
    let fail = (_: Error) => {};
    first(it.witnesses).lie = () => new Promise((_, reject) => (fail = reject));
    await letPass(it.it.clock, it.look());
    fail(new Error('a defect'));
    await come(() => it.it.logger.lines.length > 1);
    assert.deepEqual(
      it.it.logger.lines.map(({ message }) => message),
      ['A witness does not cosign the newest checkpoint: w1, timeout.', 'the witnesses could not be asked'],
    );
  });
});

test('the loop ends with a question that has no answer, and says nothing of it', async () => {
  const it = await witnessed();
  await grow(it);
  for (const witness of it.witnesses)
    witness.lie = () =>
      new Promise((resolve) =>
        it.stopping.signal.addEventListener('abort', () => resolve({ kind: 'failed', why: 'stopped' })),
      );
  const running = it.run();
  await quiet();
  it.stopping.abort();
  await running;
  assert.deepEqual(it.it.logger.lines, []);
  assert.equal(first(it.witnesses).standard.sizeOf(ORIGIN), 0);
});
