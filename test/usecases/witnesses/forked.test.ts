// The event log was copied, and both copies were continued: a witness that has cosigned the one does not cosign the other, and what
// it publishes proves that this log has signed two histories.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PublishedCheckpoint } from '#src/ports/witness.ts';
import { keeper, receipt, sizes } from '#test/support/world/receipt-log-world.ts';
import { asker, INTERVAL_MS, type ReachedWitness, witnessed } from '#test/support/world/witnessed-world.ts';

/** The witnesses have seen three receipts; this copy of the log was made after two of them, and has `more` others. */
async function forked(more: number, quorum = 2) {
  const it = await witnessed({ quorum });
  const grow = async () => {
    await receipt(it.common);
    assert.equal(await it.it.look(), 'signed');
  };
  for (let n = 0; n < 3; n++) {
    await grow();
    await it.look();
  }
  const { common, witnesses } = it;
  const whole = [...common.log.events];
  const lost = whole.findIndex(({ type, data }) => type === 'CheckpointSigned' && data.size === '2');
  common.log.restore(lost + 1);
  common.log.setAway(false);
  const clone = await keeper(common, {});
  for (let n = 0; n < more; n++) {
    await receipt(common, 1000 + n);
    assert.equal(await clone.look(), 'signed');
  }
  return { ...(await asker(common, witnesses, quorum, { it: clone })), common, witnesses };
}

const refusals = ({ asking }: Pick<Awaited<ReturnType<typeof forked>>, 'asking'>) =>
  asking.status().witnesses.map(({ refusal }) => refusal);
const others = (witnesses: readonly ReachedWitness[], why: 'unreachable' | 'timeout') => {
  for (const witness of witnesses.slice(1)) witness.lie = () => ({ kind: 'failed', why });
};

describe('a witness refuses the proof, and publishes a checkpoint that this log has signed', () => {
  for (const [name, more] of [
    ['a larger copy', 3],
    ['a copy of the same size', 1],
  ] as const)
    test(`${name}: it is named at the first question, nothing is signed, and no call is taken`, async () => {
      const it = await forked(more, 3);
      others(it.witnesses, 'unreachable');
      assert.equal(it.it.checkpoints.isWhole(), true);
      await it.look();
      assert.deepEqual(refusals(it), ['forked', 'unreachable', 'unreachable']);
      assert.equal(it.it.checkpoints.isWhole(), false);
      assert.equal(it.it.checkpoints.standing()?.problem, 'checkpoint_forgotten');
      await receipt(it.common);
      await it.it.look();
      assert.equal(sizes(it.common).at(-1), 2 + more);
      const errors = it.it.logger.lines.filter(({ level }) => level === 'error');
      assert.equal(errors.length, 1);
      assert.match(
        errors[0]?.message ?? '',
        /witness w1 publishes a checkpoint of 3 leaves that this log has signed, and that is of another history/,
      );
    });

  test('it stays so while the witness is unavailable, and ends when it cosigns', async () => {
    const it = await forked(3, 3);
    const [one] = it.witnesses as [ReachedWitness];
    others(it.witnesses, 'unreachable');
    await it.look();
    one.lie = () => ({ kind: 'failed', why: 'timeout' });
    it.it.clock.advance(INTERVAL_MS);
    await it.look();
    assert.deepEqual([refusals(it)[0], it.it.checkpoints.isWhole()], ['timeout', false]);
    one.lie = ({ checkpoint }) => ({
      kind: 'cosigned',
      lines: one.standard.cosign(checkpoint.slice(0, checkpoint.lastIndexOf('\n\n') + 1)),
    });
    it.it.clock.advance(INTERVAL_MS * 4);
    await it.look();
    assert.deepEqual([refusals(it)[0], it.it.checkpoints.isWhole()], [null, true]);
  });
});

describe('a witness refuses the proof, and shows nothing that proves it', () => {
  const SHOWN: Readonly<Record<string, (it: Awaited<ReturnType<typeof witnessed>>) => PublishedCheckpoint>> =
    {
      nothing: () => ({ kind: 'refused', status: 404 }),
      'no answer': () => ({ kind: 'failed', why: 'timeout' }),
      garbage: () => ({ kind: 'published', note: 'x' }),
      'a checkpoint of this history': ({ it }) => ({
        kind: 'published',
        note: it.checkpoints.latest()?.note ?? '',
      }),
      'an altered checkpoint': ({ it }) => ({
        kind: 'published',
        note: (it.checkpoints.latest()?.note ?? '').replace(
          /\n(\d+)\n/,
          (_, size) => `\n${Number(size) - 1}\n`,
        ),
      }),
    };
  for (const [name, shows] of Object.entries(SHOWN))
    test(`${name}: it is named, and the relay continues`, async () => {
      const it = await witnessed();
      const [one] = it.witnesses as [ReachedWitness];
      one.lie = () => ({ kind: 'refused', status: 422 });
      one.shows = () => shows(it);
      for (let n = 0; n < 3; n++) {
        await receipt(it.common);
        assert.equal(await it.it.look(), 'signed');
        await it.look();
        it.it.clock.advance(INTERVAL_MS);
      }
      assert.deepEqual([refusals(it)[0], it.it.checkpoints.isWhole()], ['http_422', true]);
    });
});
