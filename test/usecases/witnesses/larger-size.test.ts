// A witness states that it has cosigned a larger checkpoint than the event log has: believed if it publishes one that this log has
// signed, or if a quorum states it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { PublishedCheckpoint, WitnessAnswer } from '#src/ports/witness.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { type TestKey, testKey } from '#test/support/given/primitives.ts';
import { keeper, keepOf, ORIGIN, receipt, sizes } from '#test/support/world/receipt-log-world.ts';
import {
  asker,
  INTERVAL_MS,
  type ReachedWitness,
  rounds,
  witnessed,
} from '#test/support/world/witnessed-world.ts';

const UNPROVEN = 'states_larger_size_without_proof';

type World = Awaited<ReturnType<typeof witnessed>>;

/** One receipt more, and a checkpoint over it. */
async function grow({ common, it }: Pick<World, 'common' | 'it'>) {
  await receipt(common);
  assert.equal(await it.look(), 'signed');
}

const publishesNone = (): PublishedCheckpoint => ({ kind: 'refused', status: 404 });
const states = (size: number) => (): WitnessAnswer => ({ kind: 'conflict', size });
const first = ({ witnesses }: Pick<World, 'witnesses'>): ReachedWitness => witnesses[0] as ReachedWitness;
const refusals = ({ asking }: Pick<World, 'asking'>) =>
  asking.status().witnesses.map(({ refusal }) => refusal);
const errors = ({ it }: Pick<World, 'it'>) => it.logger.lines.filter(({ level }) => level === 'error');

/** A checkpoint of any size, with the signature of this key. */
const noteBy = async (key: TestKey, size = 9, origin = ORIGIN): Promise<string> => {
  const signed = await signedCheckpoint({ origin, size, root: new Uint8Array(32).fill(7) }, key, 0);
  return signed.data.note;
};

/** The log was put back from a backup of two receipts, and these witnesses have seen three. */
async function restored({ shows = null as ReachedWitness['shows'], keep = keepOf(), quorum = 2 } = {}) {
  const it = await witnessed({ quorum });
  for (let n = 0; n < 3; n++) {
    await grow(it);
    await it.look();
  }
  const { common, witnesses } = it;
  for (const witness of witnesses) witness.shows = shows;
  const whole = [...common.log.events];
  const lost = whole.findIndex(({ type, data }) => type === 'CheckpointSigned' && data.size === '2');
  common.log.restore(lost + 1);
  common.log.setAway(false);
  const restarted = await keeper(common, { checkpointKeep: keep });
  return { ...(await asker(common, witnesses, quorum, { it: restarted })), common, witnesses, whole };
}

describe('proven: the witness publishes a larger checkpoint that this log has signed', () => {
  test('a restored older log is named at the first question: nothing is signed, and no call is taken', async () => {
    const it = await restored();
    assert.equal(it.it.checkpoints.isWhole(), true);
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
    assert.equal(it.it.checkpoints.standing()?.problem, 'checkpoint_forgotten');
    assert.deepEqual(refusals(it), ['ahead', 'ahead', 'ahead']);
    await receipt(it.common);
    await it.it.look();
    assert.deepEqual(sizes(it.common), [0, 1, 2]);
    const [{ message = '' } = {}, ...more] = errors(it);
    assert.match(message, /witness w\d publishes a checkpoint of 3 leaves that this log has signed/);
    assert.match(message, /removing the witness from WITNESS_POLICY_FILE, and removing the place,/);
    assert.deepEqual(more, []);
  });

  test('a process that only follows another one names it too', async () => {
    const it = await restored();
    it.it.rows.role = 'follows';
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
  });

  test('one witness is enough, however many a quorum needs', async () => {
    const it = await restored({ quorum: 3 });
    const [, ...others] = it.witnesses;
    for (const other of others) other.lie = () => ({ kind: 'failed', why: 'unreachable' });
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
    assert.deepEqual(refusals(it), ['ahead', 'unreachable', 'unreachable']);
  });

  test('the checkpoint is kept: a restart without witnesses still has it, and the log is not continued', async () => {
    const keep = keepOf();
    const it = await restored({ keep });
    await it.look();
    assert.equal(parseCheckpoint(keep.note ?? '')?.size, 3);
    const restarted = await keeper(it.common, { checkpointKeep: keep });
    assert.equal(restarted.checkpoints.isWhole(), false);
    await receipt(it.common);
    await restarted.look();
    assert.deepEqual(sizes(it.common), [0, 1, 2]);
  });

  test('the newer backup is put back: signed and cosigned again', async () => {
    const it = await restored();
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
    for (const event of it.whole.slice(it.common.log.events.length))
      await it.common.log.append(event.stream, event.revision === 0n ? 'no_stream' : event.revision - 1n, [
        event,
      ]);
    await it.it.look();
    assert.equal(it.it.checkpoints.isWhole(), true);
    await grow(it);
    it.it.clock.advance(INTERVAL_MS);
    await it.look();
    assert.deepEqual(refusals(it), [null, null, null]);
  });
});

describe('unproven', () => {
  const other = testKey({ purpose: 'checkpoint' });
  /** What the witness publishes in place of a checkpoint that this log has signed. */
  const SHOWN: Readonly<Record<string, (it: World) => PublishedCheckpoint | Promise<PublishedCheckpoint>>> = {
    nothing: publishesNone,
    'nothing within the time limit': () => ({ kind: 'failed', why: 'timeout' }),
    garbage: () => ({ kind: 'published', note: '<html></html>' }),
    'a checkpoint by another key': async () => ({ kind: 'published', note: await noteBy(other) }),
    'a checkpoint of another origin by a key of this log': async ({ common }) => ({
      kind: 'published',
      note: await noteBy(common.key, 9, 'other.example/receipts'),
    }),
    'the newest checkpoint of this log': async ({ it }) => ({
      kind: 'published',
      note: it.checkpoints.latest()?.note ?? '',
    }),
    'a checkpoint whose size was altered': async ({ it }) => ({
      kind: 'published',
      note: (it.checkpoints.latest()?.note ?? '').replace(/\n\d+\n/, '\n9\n'),
    }),
    'its own cosignature only, over a larger size': (it) => {
      const text = `${ORIGIN}\n9\n${Buffer.alloc(32, 7).toString('base64')}\n`;
      return { kind: 'published', note: `${text}\n${first(it).standard.cosign(text)}` };
    },
  };
  for (const [name, shows] of Object.entries(SHOWN))
    test(`${name}: the relay continues, the witness is named, once as an error`, async () => {
      const it = await witnessed();
      const liar = first(it);
      liar.lie = states(9);
      liar.shows = () => shows(it);
      for (let n = 1; n <= 3; n++) {
        await grow(it);
        await it.look();
        it.it.clock.advance(INTERVAL_MS);
      }
      assert.equal(it.it.checkpoints.isWhole(), true);
      assert.deepEqual(sizes(it.common), [0, 1, 2, 3]);
      assert.equal(rounds(it.common).length, 3, 'the others are a quorum');
      assert.deepEqual(refusals(it), [UNPROVEN, null, null]);
      assert.deepEqual(
        errors(it).map(({ fields }) => fields),
        [{ witness: 'w1', reason: UNPROVEN, size: 9, condition: 'unproven' }],
      );
      liar.lie = null;
      it.it.clock.advance(INTERVAL_MS * 8);
      await grow(it);
      await it.look();
      assert.deepEqual(refusals(it), [null, null, null]);
    });

  test('a checkpoint by a compromised key of this log: who has that key can sign any size', async () => {
    const it = await witnessed();
    const thief = testKey({ purpose: 'checkpoint' });
    it.it.known.now = [it.common.key, { ...thief, record: { ...thief.record, compromisedAt: 1 } }];
    first(it).lie = states(9);
    first(it).shows = async () => ({ kind: 'published', note: await noteBy(thief) });
    await grow(it);
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), true);
    assert.deepEqual(refusals(it), [UNPROVEN, null, null]);
  });

  test('the witness is asked again less and less, also while no checkpoint waits', async () => {
    const it = await witnessed();
    const liar = first(it);
    const at: number[] = [];
    liar.lie = () => {
      at.push(it.it.clock.monotonic() / 1000);
      return { kind: 'conflict', size: 9 };
    };
    liar.shows = publishesNone;
    await grow(it);
    for (let n = 0; n < 100; n++) {
      await it.look();
      it.it.clock.advance(INTERVAL_MS);
    }
    assert.deepEqual(
      at.slice(1).map((time, n) => time - (at[n] ?? 0)),
      [10, 20, 40, 80, 160, 320],
    );
    assert.equal(errors(it).length, 1);
  });

  test('proven later, by a witness that publishes with a delay', async () => {
    const it = await restored({ shows: publishesNone, quorum: 3 });
    const [one, ...others] = it.witnesses;
    for (const witness of others) witness.lie = () => ({ kind: 'failed', why: 'unreachable' });
    assert.ok(one !== undefined);
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), true);
    one.shows = null;
    it.it.clock.advance(INTERVAL_MS);
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
    assert.equal(refusals(it)[0], 'ahead');
  });
});

describe('stated by a quorum, and published by none', () => {
  test('a restored older log is named: nothing is signed, and no call is taken', async () => {
    const it = await restored({ shows: publishesNone });
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), false);
    assert.equal(it.it.checkpoints.standing()?.problem, 'checkpoint_forgotten');
    assert.deepEqual(refusals(it), [UNPROVEN, UNPROVEN, UNPROVEN]);
    await receipt(it.common);
    await it.it.look();
    assert.deepEqual(sizes(it.common), [0, 1, 2]);
    const messages = errors(it).map(({ message }) => message);
    assert.match(
      messages.join('\n'),
      /A quorum of the witnesses states .* more leaves than the 2 of the newest checkpoint here \(w1 3, w2 3, w3 3\)/,
    );
  });

  test('it ends when fewer than a quorum state it; a witness without an answer still does', async () => {
    const it = await restored({ shows: publishesNone });
    await it.look();
    const [one, two, three] = it.witnesses as [ReachedWitness, ReachedWitness, ReachedWitness];
    const round = async () => {
      it.it.clock.advance(600_000);
      await it.look();
      return it.it.checkpoints.isWhole();
    };
    one.lie = () => ({ kind: 'failed', why: 'timeout' });
    two.lie = ({ old }) => ({ kind: 'conflict', size: old === 2 ? 1 : 2 });
    assert.equal(await round(), false, 'w1 and w3');
    three.lie = two.lie;
    assert.equal(await round(), true);
    await receipt(it.common);
    assert.equal(await it.it.look(), 'signed');
  });

  test('with `quorum none` no statement is enough', async () => {
    const it = await witnessed({ quorum: 'none' });
    for (const witness of it.witnesses) {
      witness.lie = states(9);
      witness.shows = publishesNone;
    }
    await grow(it);
    await it.look();
    assert.equal(it.it.checkpoints.isWhole(), true);
    assert.deepEqual(refusals(it), [UNPROVEN, UNPROVEN, UNPROVEN]);
  });
});

describe('what another process has signed meanwhile is not missing', () => {
  test('a larger size than this process has seen', async () => {
    const it = await witnessed();
    await grow(it);
    const stale = await asker(it.common, it.witnesses, 2);
    await stale.it.look();
    await grow(it);
    await it.look();
    assert.equal(stale.it.checkpoints.latest()?.size, 1);
    await stale.look();
    assert.equal(stale.it.checkpoints.isWhole(), true);
    assert.deepEqual(refusals(stale), [null, null, null]);
    assert.equal(rounds(it.common).length, 1);
  });

  test('a checkpoint that is signed and published while it is fetched', async () => {
    const it = await witnessed();
    await grow(it);
    const stale = await asker(it.common, it.witnesses, 2);
    first(it).lie = states(9);
    first(it).shows = async () => {
      await grow(it);
      return { kind: 'published', note: it.it.checkpoints.latest()?.note ?? '' };
    };
    await stale.look();
    assert.equal(stale.it.checkpoints.latest()?.size, 2);
    assert.equal(stale.it.checkpoints.isWhole(), true);
    assert.equal(refusals(stale)[0], UNPROVEN);
  });
});
