import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { rootOf } from '#src/domain/transparency/tree.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { keyRetired } from '#test/support/given/given-events.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { afterOthers, gate, unavailable } from '#test/support/log/fakes-log.ts';
import { given } from '#test/support/world/fakes-world.ts';
import {
  contradictions,
  type Deployment,
  deployment,
  type Keeper,
  keeper,
  receipt,
  rowsOf,
  STREAM,
  sizes,
} from '#test/support/world/receipt-log-world.ts';

/** A log with a checkpoint over as many receipts. */
async function logged(receipts: number, common = deployment()): Promise<{ common: Deployment; it: Keeper }> {
  const it = await keeper(common);
  for (let n = 0; n < receipts; n++) await receipt(common);
  if (receipts > 0) assert.equal(await it.look(), 'signed');
  return { common, it };
}

const errors = ({ logger }: Keeper) => logger.lines.filter(({ level }) => level === 'error');

test('receipts and words on keys are signed for once they are in the rows; nothing is signed for nothing', async () => {
  const { common, it } = await logged(0);
  assert.equal(await it.look(), 'rest');
  await receipt(common);
  await given(common, 'keys-relay', keyRetired());
  assert.equal(await it.look(), 'signed');
  assert.equal(await it.look(), 'rest', 'the checkpoint itself is no leaf');
  for (let n = 0; n < 5; n++) await receipt(common);
  assert.equal(await it.look(), 'signed');
  assert.deepEqual(sizes(common), [0, 2, 7]);
  assert.deepEqual(await contradictions(common), []);
  assert.equal(it.checkpoints.latest()?.size, 7);
});

test('who may not sign, or has no key for it, looks and leaves it', async () => {
  const { common, it } = await logged(1);
  await receipt(common);
  assert.equal(await it.look(false), 'sign');
  it.held.key = null as never;
  assert.equal(await it.look(), 'sign');
  assert.deepEqual(sizes(common), [0, 1]);
});

test('another process is faster: one checkpoint, and the next check continues from it', async () => {
  const { common, it } = await logged(1);
  const other = await keeper(common);
  await receipt(common);
  common.log.onNext(
    'CheckpointSigned',
    afterOthers(async () => assert.equal(await other.look(), 'signed')),
  );
  assert.equal(await it.look(), 'overtaken');
  assert.equal(await it.look(), 'rest');
  assert.deepEqual([sizes(common), it.checkpoints.latest()?.size], [[0, 1, 2], 2]);
});

test('a checkpoint by a key that was announced a moment ago is one of ours', async () => {
  const { common, it } = await logged(1);
  const fresh = testKey({ purpose: 'checkpoint' });
  const other = await keeper(common, { key: fresh, keys: [common.key, fresh] });
  await receipt(common);
  assert.equal(await other.look(), 'signed');
  await receipt(common);
  it.known.now = [common.key, fresh];
  assert.equal(await it.look(), 'signed');
  assert.deepEqual(sizes(common), [0, 1, 2, 3]);
});

test('a compromised key’s last checkpoint is gone on from: the next is another key’s', async () => {
  const { common } = await logged(1);
  const fresh = testKey({ purpose: 'checkpoint' });
  const { record } = common.key;
  const stolen = { ...common.key, record: { ...record, notAfter: 1, compromisedAt: 1 } };
  const next = await keeper(common, { key: fresh, keys: [stolen, fresh] });
  await receipt(common);
  assert.equal(await next.look(), 'signed');
  assert.equal(common.log.events.at(-1)?.data.keyId, fresh.keyId);
});

/** The log as it would stand had somebody edited it: from its first event on, as `edit` says. */
async function edited(
  common: Deployment,
  edit: (event: Deployment['log']['events'][number], n: number) => object | null,
): Promise<Deployment> {
  const other = deployment();
  for (const [n, recorded] of common.log.events.entries()) {
    const data = edit(recorded, n);
    if (data !== null) await given(other, recorded.stream, { type: recorded.type, data });
  }
  return { ...other, key: common.key };
}

const FINDINGS: readonly [string, string, (common: Deployment) => Promise<Deployment>][] = [
  [
    'a receipt before the last checkpoint was edited',
    'history_rewritten',
    (common) => edited(common, ({ data }, n) => (n === 2 ? { ...data, jws: 'an.other.one' } : { ...data })),
  ],
  [
    'a receipt is gone, and others came after',
    'history_rewritten',
    async (common) => {
      const cut = await edited(common, ({ data }, n) => (n === 2 ? null : { ...data }));
      for (const n of [91, 92, 93]) await receipt(cut, n);
      return cut;
    },
  ],
  [
    'a receipt is gone',
    'history_cut',
    (common) => edited(common, ({ data }, n) => (n === 2 ? null : { ...data })),
  ],
  [
    'the last checkpoint names another root than its note',
    'checkpoint_unreadable',
    (common) =>
      edited(common, ({ type, data }, n) =>
        type === 'CheckpointSigned' && n > 0
          ? { ...data, root: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' }
          : { ...data },
      ),
  ],
  [
    'the last checkpoint names another log than its note',
    'checkpoint_unreadable',
    (common) =>
      edited(common, ({ type, data }, n) =>
        type === 'CheckpointSigned' && n > 0 ? { ...data, origin: 'other.example/receipts' } : { ...data },
      ),
  ],
  [
    'the last checkpoint is one of another log with the same key',
    'checkpoint_not_signed',
    async (common) => {
      const log = await edited(common, ({ data }) => ({ ...data }));
      const root = rootOf((await rowsOf(log.log.events)).tree);
      const head = { origin: 'other.example/receipts', size: 3, root };
      await given(log, STREAM, await signedCheckpoint(head, common.key, 0));
      return log;
    },
  ],
  [
    'the last checkpoint is signed by a key that the log does not know',
    'checkpoint_not_signed',
    async (common) => {
      const stranger = testKey({ purpose: 'checkpoint' });
      const forged = { ...(await edited(common, ({ data }) => ({ ...data }))) };
      await receipt(forged, 90);
      await (await keeper(forged, { key: stranger })).look();
      await receipt(forged, 91);
      return forged;
    },
  ],
];

for (const [what, why, tampered] of FINDINGS) {
  test(`${what}: nothing is signed, ever, and it is said once: ${why}`, async () => {
    const { common } = await logged(3);
    const log = await tampered(common);
    const before = sizes(log);
    const it = await keeper(log);
    for (let n = 100; n < 103; n++) {
      await receipt(log, n);
      // The cut shows as long as too few came after it.
      if (why === 'history_cut') it.rows.projected = common.log.events.length - 1;
      assert.equal(await it.look(), 'refuse');
    }
    assert.deepEqual(sizes(log), before);
    assert.deepEqual(
      errors(it).map(({ fields }) => fields),
      [{ condition: why, stream: STREAM }],
    );
    assert.equal(it.checkpoints.standing()?.problem, why);
  });
}

test('a log restored from before a checkpoint that this process gave out: nothing is signed', async () => {
  const { common, it } = await logged(2);
  const restored = await edited(common, ({ data }, n) => (n > 2 ? null : { ...data }));
  assert.deepEqual(sizes(restored), [0]);
  await receipt(restored, 50);
  Object.assign(common.log, { readStream: restored.log.readStream, append: restored.log.append });
  const rows = await rowsOf(restored.log.events);
  it.rows.changed = () => rows;
  assert.equal(await it.look(), 'refuse');
  assert.deepEqual([sizes(restored), errors(it).length], [[0], 1]);
});

test('rows that are damaged sign nothing, whichever part of them: edge, tiles, or too few of them', async () => {
  const { common, it } = await logged(3);
  await receipt(common);
  const wrong = new Uint8Array(32).fill(1);
  const damages: (typeof it.rows.changed)[] = [
    ({ tree, ...rest }) => ({ ...rest, tree: { ...tree, edge: tree.edge.map(() => wrong) } }),
    (rows) => ({ ...rows, readTile: async () => Buffer.concat([wrong, wrong, wrong, wrong]) }),
    (rows) => ({ ...rows, readTile: async () => null }),
  ];
  const whole = it.rows.changed;
  for (const damage of damages) {
    it.rows.changed = damage;
    assert.equal(await it.look(), 'refuse');
  }
  assert.deepEqual([sizes(common), errors(it).length], [[0, 3], 1]);
  it.rows.changed = whole;
  assert.equal(await it.look(), 'signed', 'it fits again');
  assert.equal(it.logger.lines.at(-1)?.level, 'info');
  assert.deepEqual(it.checkpoints.standing(), { ageMs: 0, problem: null });
});

test('while the log is unavailable nothing is decided', async () => {
  const { common, it } = await logged(1);
  await receipt(common);
  common.log.setAway(true);
  await assert.rejects(it.look(), EventLogUnavailable);
  common.log.setAway(false);
  assert.equal(await it.look(), 'signed');
});

test('a process that ends gives up an append of unknown fate', async () => {
  const { common, it } = await logged(1);
  await receipt(common);
  it.ending.abort();
  common.log.onNext('CheckpointSigned', unavailable);
  await assert.rejects(it.look(), EventLogUnavailable);
});

test('standing: the oldest leaf without a checkpoint, as long as this process has seen it wait', async () => {
  const { common, it } = await logged(1);
  const other = await keeper(common);
  assert.equal(other.checkpoints.standing(), null, 'no look yet');
  await other.look(false);
  assert.deepEqual(other.checkpoints.standing(), { ageMs: 0, problem: null });
  other.clock.advance(3_600_000);
  await receipt(common);
  await other.look(false);
  assert.equal(other.checkpoints.standing()?.ageMs, 0, 'an hour without receipts is no delay');
  other.clock.advance(4000);
  await receipt(common);
  await other.look(false);
  assert.equal(other.checkpoints.standing()?.ageMs, 4000);
  await it.look();
  await receipt(common);
  other.clock.advance(1000);
  await other.look(false);
  assert.equal(
    other.checkpoints.standing()?.ageMs,
    0,
    'a checkpoint covered what waited; this one has just come',
  );
  other.clock.advance(500);
  assert.equal(other.checkpoints.standing()?.ageMs, 500);
  await it.look();
  await other.look(false);
  other.clock.advance(500);
  assert.equal(other.checkpoints.standing()?.ageMs, 0);
});

test('standing: a checkpoint that cannot be stored leaves its leaves waiting', async () => {
  const { common, it } = await logged(1);
  await receipt(common);
  const held = gate();
  common.log.onNext('CheckpointSigned', held.frozen);
  const looking = it.look();
  await held.reached;
  it.clock.advance(61_000);
  assert.deepEqual(it.checkpoints.standing(), { ageMs: 61_000, problem: null });
  held.open();
  assert.equal(await looking, 'signed');
  assert.deepEqual(it.checkpoints.standing(), { ageMs: 0, problem: null });
});

test('the event is one that every version reads: its parts are those of its note', async () => {
  const { common } = await logged(1);
  const last = common.log.events.at(-1);
  const event = last && decodeEvent(last);
  assert.ok(event?.type === 'CheckpointSigned');
  const { origin, size, root, keyId, note } = event.data;
  assert.deepEqual(note.split('\n').slice(0, 4), [origin, size, root, '']);
  assert.equal(keyId, common.key.keyId);
});
