// Tampering with keys and with leaves under checkpoints is reported, as precisely as the record allows.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { checkpointText, parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import { rootOf } from '#src/domain/transparency/tree.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import {
  audit,
  edited,
  findingTexts,
  givenRecord,
  nth,
  ORIGIN,
  type Record,
  renumbered,
  resigned,
  treeOf,
  without,
} from '#test/support/given/audited-record.ts';
import { decided } from '#test/support/given/given-decision.ts';
import { at, keyActivated, keyRetired } from '#test/support/given/given-events.ts';
import { type TestKey, testKey } from '#test/support/given/primitives.ts';
import { given } from '#test/support/world/fakes-world.ts';

type Events = readonly RecordedEvent[];
const LOG = 'log-receipts';
const KEYS = 'keys-relay';
const MINUTE_MS = 60_000;

/** Checkpoints 0 to 3: the first of nothing, then after each two of six jobs. */
async function honest(): Promise<Record> {
  const it = await givenRecord();
  for (let n = 1; n <= 6; n++) {
    it.clock.advance(1000);
    await it.paid();
    if (n % 2 === 0) await it.checkpoint();
  }
  assert.deepEqual((await audit(it.log.events)).findings, []);
  return it;
}

const it = await honest();
const { events } = it.log;
const of = (type: string, n = 0) => nth(events, type, n);
const receiptOf = (n: number) => of('ReceiptSigned', n);
const jobGone = (n: number): Events =>
  renumbered(without(events, ({ stream }) => stream === receiptOf(n).stream));

async function manyLeaves({ it, key: { keyId } }: Record, count: number): Promise<void> {
  const far = at(365 * 86_400_000);
  const retired = keyRetired({ keyId, effectiveAt: far, retiredAt: at(0) });
  await given(it, KEYS, ...Array<typeof retired>(count).fill(retired));
}

describe('the leaves', () => {
  test('a job that is removed shows at the next checkpoint, which names where to look', async () => {
    const { findings, summary } = await audit(jobGone(2));
    assert.deepEqual(findingTexts({ findings, summary }), [`checkpoint_ahead ${LOG} 2`]);
    const [finding] = findings;
    assert.match(
      finding?.message ?? '',
      /^The checkpoint of 6 leaves covers more than the 5 that the record has before it\. After the last checkpoint/,
    );
    assert.ok(finding?.message.includes(`${receiptOf(3).stream} revision 3`));
    assert.equal(summary.notes.unfitCheckpoints, 1);
  });
  test('a job that is removed from before a smaller checkpoint shows by its root', async () => {
    const early = await givenRecord();
    await early.paid();
    await early.paid();
    await early.checkpoint(3);
    const { stream } = nth(early.log.events, 'ReceiptSigned');
    const changed = renumbered(without(early.log.events, (event) => event.stream === stream));
    assert.deepEqual(findingTexts(await audit(changed)), [`checkpoint_root_mismatch ${LOG} 1`]);
  });
  test('jobs that change places show at the checkpoint after them, and not at those before', async () => {
    const [a, b] = [receiptOf(2).stream, receiptOf(3).stream];
    const places = events.flatMap((event, index) =>
      event.stream === a || event.stream === b ? [index] : [],
    );
    const moved = [b, a].flatMap((stream) => events.filter((event) => event.stream === stream));
    const changed = renumbered(events.map((event, index) => moved[places.indexOf(index)] ?? event));
    const { findings, summary } = await audit(changed);
    assert.ok(findingTexts({ findings, summary }).includes(`checkpoint_root_mismatch ${LOG} 2`));
    assert.equal(summary.notes.unfitCheckpoints, 1);
  });
  test('a receipt that is signed again with the relay’s own key is found at the next checkpoint', async () => {
    const changed = await resigned(events, receiptOf(0), it.key, () => ({
      receiptId: receiptOf(0).data.receiptId,
    }));
    assert.deepEqual((await audit(changed)).findings, [], 'the same payload has the same signature');
    const forged = await resigned(events, receiptOf(0), it.key, () => ({
      log: { origin: ORIGIN, mmdSeconds: 9 },
    }));
    assert.deepEqual(findingTexts(await audit(forged)), [`checkpoint_root_mismatch ${LOG} 1`]);
  });
  test('a leaf counts in any stream', async () => {
    const own = await givenRecord();
    const { keyId, x } = testKey();
    await given(own, 'keys-other', keyActivated({ keyId, x }));
    await own.checkpoint();
    assert.deepEqual(findingTexts(await audit(own.log.events)), ['event_misplaced keys-other 0']);
  });
  test('many leaves are named by the first and the last of them', async () => {
    const late = await givenRecord();
    for (let n = 0; n < 7; n++) await late.paid();
    await late.checkpoint();
    const changed = edited(late.log.events, nth(late.log.events, 'SigningKeyActivated', 1), {
      activatedAt: at(-1000),
    });
    const { findings } = await audit(changed);
    const [first, last] = [
      nth(late.log.events, 'SigningKeyActivated'),
      nth(late.log.events, 'ReceiptSigned', 6),
    ];
    assert.equal(findings.length, 1);
    const [{ kind, message } = assert.fail('nothing found')] = findings;
    assert.equal(kind, 'checkpoint_root_mismatch');
    assert.ok(message.includes(`${first.stream} revision 0 to ${last.stream} revision 3`), message);
  });
  test('every earlier size of a tree of three tiles is computed from the leaves alone', async () => {
    const large = await givenRecord();
    await manyLeaves(large, 600);
    for (const size of [1, 255, 256, 257, 511, 512, 513, 600, 602]) await large.checkpoint(size);
    const { findings, summary } = await audit(large.log.events);
    assert.deepEqual([findings, summary.treeSize, summary.notes.uncoveredLeaves], [[], 602, 0]);
  });
});

type Claimed = {
  readonly origin?: string;
  readonly size?: number;
  readonly root?: Uint8Array;
  readonly key?: TestKey;
};

/** A checkpoint of anything, truly signed, in the place of the last one, or of the n-th. */
async function claimed(change: Claimed, event: object = {}, n = 3, all: Events = events): Promise<Events> {
  const { origin = ORIGIN, size = 8, key = it.checkpointKey } = change;
  const root = change.root ?? rootOf(await treeOf(events, size));
  const publicKey = Buffer.from(key.x, 'base64url');
  const note = await signNote(checkpointText({ origin, size, root }), { name: origin, publicKey }, key.sign);
  const said = {
    origin,
    size: String(size),
    root: Buffer.from(root).toString('base64'),
    keyId: key.keyId,
    note,
  };
  return edited(all, nth(all, 'CheckpointSigned', n), { ...said, ...event });
}

describe('checkpoints', () => {
  const last = `${LOG} 3`;
  for (const [what, change, expected] of [
    ['what was signed before', {}, []],
    ['another root', { root: new Uint8Array(32) }, ['checkpoint_root_mismatch']],
    ['more leaves than there are', { size: 9 }, ['checkpoint_ahead']],
    ['fewer leaves than the one before', { size: 5 }, ['checkpoint_shrinks']],
    ['another log', { origin: 'other.example/receipts' }, ['checkpoint_origin_changed']],
    [
      'a key that was never announced',
      { key: testKey({ purpose: 'checkpoint' }) },
      ['checkpoint_signature_invalid'],
    ],
    ['the key of receipts', { key: it.key }, ['checkpoint_signature_invalid']],
  ] as const) {
    test(`a checkpoint of ${what}: ${expected.join() || 'clean'}`, async () => {
      assert.deepEqual(
        findingTexts(await audit(await claimed(change))),
        expected.map((kind) => `${kind} ${last}`),
      );
    });
  }
  for (const [what, event, expected] of [
    ['a time before its key', { signedAt: at(-5000) }, ['checkpoint_signature_invalid']],
    ['a note that is none', { note: 'so be it' }, ['checkpoint_unreadable']],
    [
      'a note whose root is edited',
      { note: String(of('CheckpointSigned', 3).data.note).replace('\n8\n', '\n7\n') },
      ['checkpoint_event_mismatch', 'checkpoint_signature_invalid', 'checkpoint_root_mismatch'],
    ],
  ] as const) {
    test(`a checkpoint that states ${what} is reported`, async () => {
      assert.deepEqual(
        findingTexts(await audit(await claimed({}, event))),
        expected.map((kind) => `${kind} ${last}`),
      );
    });
  }
  test('a checkpoint that does not fit, between others that fit, is reported alone, and so is the next one', async () => {
    const wrong = { size: 4, root: new Uint8Array(32) };
    const one = await claimed(wrong, {}, 1);
    assert.deepEqual(findingTexts(await audit(one)), [`checkpoint_root_mismatch ${LOG} 1`]);
    const two = await claimed({ ...wrong, size: 8 }, {}, 3, one);
    const { findings, summary } = await audit(two);
    const expected = [`checkpoint_root_mismatch ${LOG} 1`, `checkpoint_root_mismatch ${LOG} 3`];
    assert.deepEqual([findingTexts({ findings, summary }), summary.notes.unfitCheckpoints], [expected, 0]);
  });
  test('a checkpoint without new leaves is found: an idle relay signs none', async () => {
    const own = await givenRecord();
    await own.paid();
    await own.checkpoint();
    own.clock.advance(5000);
    await own.checkpoint();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [`checkpoint_repeated ${LOG} 2`]);
    const { summary } = await audit(own.log.events);
    assert.deepEqual([summary.notes.uncoveredLeaves, summary.notes.unfitCheckpoints], [0, 0]);
  });
  test('one that shrinks says nothing of the leaves: the next that does not fit is named, too', async () => {
    const wrong = await claimed({ root: new Uint8Array(32) });
    assert.deepEqual(findingTexts(await audit(await claimed({ size: 3 }, {}, 2, wrong))), [
      `checkpoint_shrinks ${LOG} 2`,
      `checkpoint_root_mismatch ${LOG} 3`,
    ]);
  });
  test('checkpoints that are removed all together are missed by each receipt', async () => {
    const changed = renumbered(without(events, ({ stream }) => stream === LOG));
    const missed = [0, 1, 2, 3, 4, 5].map((n) => `receipt_origin_mismatch ${receiptOf(n).stream} 3`);
    assert.deepEqual(findingTexts(await audit(changed)), missed);
  });
  test('one checkpoint that is removed is missed by its revision', async () => {
    const changed = without(events, (event) => event === of('CheckpointSigned', 2));
    const found = findingTexts(await audit(changed));
    assert.ok(found.includes(`revision_gap ${last}`));
  });
  test('a receipt that promises to be in another log is named', async () => {
    const own = await givenRecord();
    await own.paid(
      {},
      own.process({ receiptLog: () => ({ origin: 'other.example/receipts', mmdSeconds: 3600 }) }),
    );
    const { stream } = nth(own.log.events, 'ReceiptSigned');
    assert.deepEqual(findingTexts(await audit(own.log.events)), [`receipt_origin_mismatch ${stream} 3`]);
  });
});

describe('what a receipt promises', () => {
  async function waiting(ms: number) {
    const own = await givenRecord();
    await own.paid();
    own.clock.advance(ms);
    return own;
  }
  const receipt = (own: Record) => `receipt_not_logged ${nth(own.log.events, 'ReceiptSigned').stream} 3`;

  test('left out while there is time: a note', async () => {
    const own = await waiting(60 * MINUTE_MS);
    await own.checkpoint(2);
    await own.paid();
    const { findings, summary } = await audit(own.log.events);
    assert.deepEqual([findings, summary.notes.uncoveredLeaves], [[], 2]);
  });
  test('left out where no checkpoint follows, and two later receipts: reported', async () => {
    const own = await waiting(60 * MINUTE_MS + 1000);
    await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), []);
    await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [receipt(own)]);
  });
  for (const [what, ahead] of [
    ['decision', (own: Record) => decided(own.it)],
    ['paid call, with its payment and its claim', (own: Record) => own.paid()],
  ] as const) {
    test(`one ${what} from hours ahead makes nothing late, before a checkpoint or behind it`, async () => {
      const behind = await waiting(0);
      behind.clock.advance(120 * MINUTE_MS);
      await ahead(behind);
      assert.deepEqual(findingTexts(await audit(behind.log.events)), []);
    });
  }
  test('receipts of a fast clock before the last checkpoint make nothing behind it late', async () => {
    const own = await waiting(120 * MINUTE_MS);
    for (let n = 0; n < 2; n++) await own.paid();
    await own.checkpoint();
    own.clock.skew(-119 * MINUTE_MS);
    await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), []);
  });
  test('left out after thousands of other leaves, by a checkpoint of the first of them: reported', async () => {
    const own = await givenRecord();
    await manyLeaves(own, 5000);
    await own.paid();
    await own.checkpoint(9);
    own.clock.advance(60 * MINUTE_MS + 1000);
    for (let n = 0; n < 2; n++) await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [receipt(own)]);
  });
  test('checkpoints that stop, or that are removed from some time on, are missed by the receipts after them', async () => {
    const own = await givenRecord();
    for (let n = 0; n < 4; n++) {
      await own.paid();
      await own.checkpoint();
      own.clock.advance(31 * MINUTE_MS);
    }
    for (let n = 0; n < 2; n++) await own.paid();
    const cut = (from: number) =>
      renumbered(without(own.log.events, ({ stream, revision }) => stream === LOG && revision >= from));
    assert.deepEqual(findingTexts(await audit(cut(5))), []);
    const { findings, summary } = await audit(cut(2));
    // Of the five behind it the last three are young.
    assert.deepEqual(findingTexts({ findings, summary }), [
      `receipt_not_logged ${nth(own.log.events, 'ReceiptSigned', 1).stream} 3`,
    ]);
    assert.equal(summary.notes.uncoveredLeaves, 5);
  });
  test('a promise that no verifier waits for is found, and is not waited for', async () => {
    const own = await givenRecord();
    const promising = (mmdSeconds: number) =>
      own.paid({}, own.process({ receiptLog: () => ({ origin: ORIGIN, mmdSeconds }) }));
    await promising(86_400);
    await promising(86_401);
    await promising(Number.MAX_SAFE_INTEGER);
    const place = (n: number) => `${nth(own.log.events, 'ReceiptSigned', n).stream} 3`;
    const late = [1, 2].map((n) => `receipt_promise_late ${place(n)}`);
    assert.deepEqual(findingTexts(await audit(own.log.events)), late);
    own.clock.advance(86_401_000);
    for (let n = 0; n < 2; n++) await own.paid();
    const forgotten = without(
      own.log.events,
      ({ stream }) => stream === nth(own.log.events, 'ReceiptSigned').stream,
    );
    assert.deepEqual(findingTexts(await audit(renumbered(forgotten))), [
      ...late,
      `receipt_not_logged ${place(1)}`,
    ]);
  });
  test('what a wrong checkpoint is over is not blamed for it', async () => {
    const own = await waiting(0);
    await own.checkpoint(undefined, testKey({ purpose: 'checkpoint' }));
    own.clock.advance(61 * MINUTE_MS);
    await decided(own.it);
    assert.deepEqual(findingTexts(await audit(own.log.events)), [`checkpoint_signature_invalid ${LOG} 1`]);
  });
});

describe('keys', () => {
  test('a receipt by a key that is announced after it is named', async () => {
    const own = await givenRecord({ log: false });
    const second = testKey();
    own.signing.key = second;
    await own.paid();
    await own.announce(second);
    const place = `${nth(own.log.events, 'ReceiptSigned').stream} 3`;
    const found = findingTexts(await audit(own.log.events));
    assert.deepEqual(found, [`receipt_signature_invalid ${place}`, `receipt_key_invalid ${place}`]);
  });
  test('a receipt by a retired key is named, from the second after its retirement on', async () => {
    const own = await givenRecord({ log: false });
    await own.retire(own.key);
    await own.paid();
    own.clock.advance(1000);
    await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [
      `receipt_key_invalid ${nth(own.log.events, 'ReceiptSigned', 1).stream} 3`,
    ]);
  });
  test('a receipt by the key of checkpoints is named', async () => {
    const own = await givenRecord();
    own.signing.key = own.checkpointKey;
    await own.paid();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [
      `receipt_key_invalid ${nth(own.log.events, 'ReceiptSigned').stream} 3`,
    ]);
  });
  test('a compromise that is announced later undoes the receipts from its date on, and no earlier ones', async () => {
    const own = await givenRecord();
    const [second, third] = [testKey(), testKey()];
    await own.announce(second);
    await own.paid();
    own.clock.advance(1000);
    const compromisedAt = own.now();
    await own.paid();
    own.signing.key = second;
    await own.paid();
    await own.announce(third);
    own.signing.key = third;
    await own.retire(own.key, { reason: 'compromised', compromisedAt });
    await own.retire(own.key, { reason: 'compromised', compromisedAt });
    await own.paid();
    const { findings } = await audit(own.log.events);
    const undone = nth(own.log.events, 'ReceiptSigned', 1);
    assert.deepEqual(
      findings.map(({ kind, stream, revision, jobId }) => [kind, stream, revision, jobId]),
      [['receipt_key_invalid', undone.stream, '3', undone.data.jobId]],
    );
  });
  test('a checkpoint by a retired key is named where it was signed after the retirement', async () => {
    const own = await givenRecord();
    await own.retire(own.checkpointKey);
    await own.checkpoint();
    own.clock.advance(1000);
    await own.paid();
    await own.checkpoint();
    assert.deepEqual(findingTexts(await audit(own.log.events)), [`checkpoint_signature_invalid ${LOG} 2`]);
  });

  test('a checkpoint by a key whose compromise was recorded before it is named, at any claimed time', async () => {
    const own = await givenRecord();
    await own.announce(testKey({ purpose: 'checkpoint' }));
    await own.paid();
    own.clock.advance(MINUTE_MS);
    await own.retire(own.checkpointKey, { reason: 'compromised', compromisedAt: own.now() });
    await own.checkpoint();
    const { events: all } = own.log;
    const early = edited(all, nth(all, 'CheckpointSigned', 1), { signedAt: at(MINUTE_MS - 5000) });
    for (const record of [all, early]) {
      const { findings, summary } = await audit(record);
      assert.deepEqual(findingTexts({ findings, summary }), [`checkpoint_signature_invalid ${LOG} 1`]);
    }
  });

  describe('that the auditor kept', () => {
    const seconds = (it: Record) => Math.floor(it.clock.now() / 1000);
    async function rotated() {
      const own = await givenRecord();
      const second = testKey();
      await own.announce(second);
      await own.paid();
      await own.checkpoint();
      own.clock.advance(2000);
      const ended = seconds(own);
      own.clock.advance(2000);
      const { events } = own.log;
      const keys = [own.key.record, second.record, own.checkpointKey.record];
      const kept = (changes: Partial<KeyRecord>, of = own.key) => ({
        keys: keys.map((key) => (key.keyId === of.keyId ? { ...key, ...changes } : key)),
        checkpoints: [],
      });
      return { own, events, keys, kept, ended };
    }

    test('a receipt and a checkpoint after the end that only the kept keys have are named', async () => {
      const { own, events, kept, ended } = await rotated();
      assert.deepEqual(findingTexts(await audit(events, kept({ notAfter: ended }))), []);
      await own.paid();
      await own.checkpoint();
      const late = [`receipt_key_invalid ${nth(own.log.events, 'ReceiptSigned', 1).stream} 3`];
      for (const change of [{ notAfter: ended }, { compromisedAt: ended }])
        assert.deepEqual(findingTexts(await audit(own.log.events, kept(change))), late);
      assert.deepEqual(
        findingTexts(await audit(own.log.events, kept({ notAfter: ended }, own.checkpointKey))),
        [`checkpoint_signature_invalid ${LOG} 2`],
      );
    });
    test('checkpoints from before a compromise that only the kept keys have are clean', async () => {
      const { own, events, kept, ended } = await rotated();
      const compromised = kept({ notAfter: ended, compromisedAt: ended }, own.checkpointKey);
      assert.deepEqual(findingTexts(await audit(events, compromised)), []);
    });
    test('a kept key that the record lacks is named, and verifies a kept checkpoint', async () => {
      const { own, events, keys } = await rotated();
      const [foreign, head] = [testKey({ purpose: 'checkpoint' }), { origin: ORIGIN, size: 0 }];
      const publicKey = Buffer.from(foreign.x, 'base64url');
      const root = rootOf(await treeOf(events, 0));
      const note = await signNote(
        checkpointText({ ...head, root }),
        { name: ORIGIN, publicKey },
        foreign.sign,
      );
      const checkpoints = [{ ...head, root, note, source: 'a file' }];
      assert.deepEqual(
        findingTexts(await audit(own.log.events, { keys: [...keys, foreign.record], checkpoints })),
        ['key_missing null null'],
      );
      assert.deepEqual(findingTexts(await audit(own.log.events, { keys, checkpoints })), [
        'kept_checkpoint_signature_invalid null null',
      ]);
    });
  });

  describe('and a key that was stolen', () => {
    /** Receipts 0 and 1 before the kept checkpoint, 2 after it, then the compromise of a minute ago, and 3 by another key. */
    async function stolen() {
      const own = await givenRecord();
      const second = testKey();
      await own.announce(second);
      for (let n = 0; n < 2; n++) await own.paid();
      await own.checkpoint();
      own.clock.advance(MINUTE_MS);
      const compromisedAt = own.now();
      own.signing.key = second;
      await own.paid();
      await own.checkpoint();
      await own.retire(own.key, { reason: 'compromised', compromisedAt });
      await own.paid();
      await own.checkpoint();
      const note = (n: number) => {
        const { note } = nth(own.log.events, 'CheckpointSigned', n).data;
        const head = parseCheckpoint(String(note)) ?? assert.fail('no checkpoint');
        return { ...head, note: String(note), source: 'a file' };
      };
      const seen = async (...numbers: readonly number[]) =>
        findingTexts(await audit(own.log.events, { keys: null, checkpoints: numbers.map(note) }));
      /** The thief's receipt: truly signed, in the log, its time and its events of before the compromise. */
      const backdated = async () => {
        own.signing.key = own.key;
        own.clock.skew(-1000);
        await own.paid();
        own.clock.skew(1000);
        await own.checkpoint();
        return `receipt_date_unproven ${nth(own.log.events, 'ReceiptSigned', 4).stream} 3`;
      };
      return { own, seen, backdated };
    }

    test('receipts in a checkpoint that was kept from before the compromise are clean', async () => {
      const { seen } = await stolen();
      assert.deepEqual([await seen(), await seen(0, 1), await seen(1, 2, 3)], [[], [], []]);
    });
    test('one that is dated before the compromise, and beyond that checkpoint, is found', async () => {
      const { seen, backdated } = await stolen();
      const found = await backdated();
      assert.deepEqual([await seen(), await seen(1), await seen(1, 2, 3, 4)], [[], [found], [found]]);
    });
    test('a checkpoint of after the compromise proves no date', async () => {
      const { seen, backdated } = await stolen();
      await backdated();
      assert.deepEqual([await seen(2), await seen(3), await seen(4)], [[], [], []]);
    });
    test('an older checkpoint proves less: receipts between it and the compromise are found', async () => {
      const { own, seen } = await stolen();
      const between = [0, 1].map(
        (n) => `receipt_date_unproven ${nth(own.log.events, 'ReceiptSigned', n).stream} 3`,
      );
      assert.deepEqual((await seen(0)).toSorted(), between.toSorted());
    });
  });

  const key = testKey();
  const announced = { keyId: key.keyId, x: key.x };
  for (const [what, event, kind] of [
    ['announced twice', keyActivated({ keyId: it.key.keyId, x: it.key.x }), 'key_event_impossible'],
    [
      'named otherwise than after itself',
      keyActivated({ ...announced, keyId: 'A'.repeat(43) }),
      'key_id_mismatch',
    ],
    ['retired and never announced', keyRetired({ keyId: key.keyId }), 'key_event_impossible'],
  ] as const) {
    test(`a key that is ${what} is named`, async () => {
      const more = { ...of('SigningKeyActivated'), ...event, id: crypto.randomUUID() } as RecordedEvent;
      const changed = renumbered([...events, more]);
      assert.deepEqual(findingTexts(await audit(changed)), [`${kind} ${KEYS} 2`]);
    });
  }
  test('keys that are removed leave every receipt and checkpoint without one', async () => {
    const found = new Set(
      (await audit(renumbered(without(events, ({ stream }) => stream === KEYS)))).findings.map(
        ({ kind }) => kind,
      ),
    );
    for (const kind of [
      'receipt_signature_invalid',
      'receipt_key_invalid',
      'checkpoint_signature_invalid',
      'checkpoint_ahead',
    ] as const)
      assert.ok(found.has(kind), kind);
  });
});
