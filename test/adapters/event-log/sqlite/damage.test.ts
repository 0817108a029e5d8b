// Damage to the file of the embedded log, made in real files: what is found, what still works, and what is refused.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { type Damage, REMEDY } from '#src/domain/damage.ts';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import {
  EventDamaged,
  type EventLog,
  EventLogUnavailable,
  LogDamaged,
  type RecordedEvent,
} from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { freshStream, newEvent, newEvents } from '#test/support/contract/event-log-fixtures.ts';
import {
  flipByte,
  hideInIndex,
  offsetInIndex,
  offsetOf,
  PAGE_BYTES,
  pageTypeAt,
  reindex,
  zeroPageAt,
} from '#test/support/log/damaged-file.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

const STREAMS = 60;
const EACH = 3;

const streamName = (n: number) => `given-${String(n).padStart(4, '0')}`;
const marker = (n: number, revision: number) => `marker ${n}/${revision}.`;
/** Events are stored stream by stream. */
const positionOf = (n: number, revision: number) => String(n * EACH + revision + 1).padStart(20, '0');

type Given = {
  readonly file: string;
  readonly before: readonly RecordedEvent[];
  /** Opens the file; closed after the test. */
  open(logger?: ReturnType<typeof collectingLogger>): Promise<EventLog & EventScan>;
};

/** A closed log of 180 events of about 300 bytes. */
async function withFile(body: (given: Given) => Promise<void>): Promise<void> {
  const { file, remove } = logDirectory();
  const opened: EventLog[] = [];
  try {
    const filling = await sqliteEventLog({ file });
    for (let n = 0; n < STREAMS; n++) {
      const events = Array.from({ length: EACH }, (_, revision) =>
        newEvent('Noted', { text: `${marker(n, revision)}${'x'.repeat(120)}` }),
      );
      await filling.append(streamName(n), 'no_stream', events);
    }
    const before = await filling.readAll({ after: null, max: 1000 });
    await filling.close();
    const open: Given['open'] = async (logger) => {
      const log = await sqliteEventLog({ file, lockTimeoutMs: 200, ...(logger && { logger }) });
      opened.push(log);
      return log;
    };
    await body({ file, before, open });
  } finally {
    for (const log of opened) await log.close();
    remove();
  }
}

const damageAt = async (call: Promise<unknown>): Promise<Damage> => {
  const error = await call.then(
    () => assert.fail('nothing was thrown'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof EventDamaged, String(error));
  assert.ok(!/unavailable/.test(error.message), error.message);
  return error.damage;
};

/** All that a scan finds, in parts of 7. */
async function scanned(log: EventScan, index = true) {
  const events: RecordedEvent[] = [];
  const damaged: Damage[] = [];
  let [unchecked, unindexed] = [0, 0];
  for (let after: string | null = null; ; ) {
    const scan = await log.scan({ after, max: 7, index });
    for (const one of scan.found) {
      if (one.kind === 'event') events.push(one.event);
      else damaged.push(one.damage);
    }
    unchecked += scan.unchecked;
    unindexed += scan.unindexed.length;
    if (scan.next === null) return { events, damaged, unchecked, unindexed };
    after = scan.next;
  }
}

test('a changed byte in an event: its reads name it, everything else works', () =>
  withFile(async ({ file, before, open }) => {
    flipByte(file, offsetOf(file, marker(20, 1)));
    const logger = collectingLogger();
    const log = await open(logger);
    const position = positionOf(20, 1);
    const place = { from: position, to: position, stream: streamName(20), revision: '1' };
    const expected: Damage = { ...place, problem: 'changed' };

    assert.deepEqual(await damageAt(log.readStream(streamName(20))), expected);
    assert.deepEqual(await damageAt(log.readStream(streamName(20), { direction: 'backwards' })), expected);
    assert.equal((await log.readStream(streamName(20), { from: 2n })).length, 1);
    assert.equal((await log.readStream(streamName(20), { max: 1 })).length, 1);
    assert.deepEqual(await log.readStream(streamName(21)), before.slice(63, 66));
    for (const types of [undefined, ['Noted']] as const) {
      const range = { after: null, max: 1000, ...(types && { types }) };
      assert.deepEqual(await damageAt(log.readAll(range)), expected);
    }
    assert.deepEqual(await log.readAll({ after: null, max: 61 }), before.slice(0, 61));
    assert.deepEqual(await log.readAll({ after: position, max: 1000 }), before.slice(62));

    const received: RecordedEvent[] = [];
    const subscription = log.subscribeAll({ after: null, signal: new AbortController().signal });
    const reading = (async () => {
      for await (const message of subscription) if (message.kind === 'event') received.push(message.event);
    })();
    assert.deepEqual(await damageAt(reading), expected);
    assert.deepEqual(received, before.slice(0, 61));

    assert.deepEqual(await log.health(), { ok: true, damaged: { count: 1, first: expected } });
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(2));
    const { events, damaged } = await scanned(log);
    assert.deepEqual([damaged, events.length], [[expected], before.length + 1]);
    assert.deepEqual(events.slice(0, -2), before.toSpliced(61, 1));

    const lines = logger.lines.filter(({ level }) => level === 'error');
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['the event log has damage: what needs it fails, other calls are executed'],
    );
    assert.match(JSON.stringify(lines[0]?.fields), /the bytes are not those/);
    assert.ok(JSON.stringify(lines[0]?.fields).includes(REMEDY.whole));
  }));

test('every column of a row is covered by its checksum', () =>
  withFile(async ({ file, before }) => {
    for (const change of [
      "stream = 'given-9999'",
      'revision = 77',
      'id = lower(hex(randomblob(16)))',
      "type = 'Other'",
      'created = created + 1',
      "data = '{}'",
      'metadata = \'{"a":1}\'',
      'checksum = checksum + 1',
    ]) {
      const copy = `${file}.copy`;
      writeFileSync(copy, readFileSync(file));
      const db = new DatabaseSync(copy);
      db.exec('DROP TRIGGER events_are_not_updated');
      db.exec(`UPDATE events SET ${change} WHERE position = 5`);
      db.close();
      const log = await sqliteEventLog({ file: copy });
      const { damaged, events } = await scanned(log, false);
      assert.deepEqual([damaged[0]?.from, damaged.length], [positionOf(1, 1), 1], change);
      assert.equal(events.length, before.length - 1);
      await log.close();
    }
  }));

test('a zeroed page of rows: each of its events is named, all others are read, calls continue', () =>
  withFile(async ({ file, before, open }) => {
    const offset = offsetOf(file, marker(30, 0));
    assert.equal(pageTypeAt(file, offset), 13);
    zeroPageAt(file, offset);
    const log = await open();
    const { events, damaged } = await scanned(log);
    assert.ok(damaged.length > 3 && damaged.length < 30, `${damaged.length}`);
    assert.equal(events.length + damaged.length, before.length);
    const lost = damaged.map(({ from }) => from);
    assert.deepEqual(
      events,
      before.filter(({ position }) => !lost.includes(position)),
    );
    for (const { from, to, stream, revision, problem } of damaged) {
      const was = before.find(({ position }) => position === from);
      assert.deepEqual(
        [stream, BigInt(revision ?? -1), to, problem],
        [was?.stream, was?.revision, from, 'unreadable'],
      );
    }
    assert.equal((await damageAt(log.readStream(streamName(30)))).revision, '0');
    assert.equal((await damageAt(log.readAll({ after: null, max: 1000 }))).from, lost[0]);
    assert.deepEqual(
      await log.readAll({ after: lost.at(-1) ?? null, max: 1000 }),
      events.slice(-(180 - Number(lost.at(-1)))),
    );
    await log.append(freshStream(), 'no_stream', newEvents(1));
    // Whether this repeats what is stored cannot be read.
    const repeated = log.append(streamName(30), 'no_stream', newEvents(1));
    assert.equal((await damageAt(repeated)).stream, streamName(30));
    await log.append(freshStream(), 'no_stream', newEvents(1));
    const health = await log.health();
    assert.deepEqual([health.ok, health.damaged?.count], [true, damaged.length]);
    assert.ok((await log.checkFiles())?.length);
  }));

test('the last page of rows is zeroed: the index still has the last position, nothing is appended', () =>
  withFile(async ({ file, before, open }) => {
    zeroPageAt(file, offsetOf(file, marker(STREAMS - 1, 2)));
    const log = await open();
    assert.equal(await log.lastPosition(), before.at(-1)?.position);
    const { events, damaged } = await scanned(log);
    assert.equal(events.length + damaged.length, before.length);
    assert.equal(damaged.at(-1)?.stream, streamName(STREAMS - 1));
    await assert.rejects(log.append(freshStream(), 'no_stream', newEvents(1)), EventLogUnavailable);
    const health = await log.health();
    assert.deepEqual([health.ok, !health.ok && health.problem], [false, 'damaged']);
    assert.equal((await log.readStream(streamName(3))).length, EACH);
  }));

test('a zeroed page of the index that only an append reads: nothing more is appended', () =>
  withFile(async ({ file, open }) => {
    zeroPageAt(file, offsetInIndex(file, streamName(10)));
    const log = await open();
    await assert.rejects(log.append(streamName(10), 'no_stream', newEvents(1)), LogDamaged);
    await assert.rejects(log.append('zzzz', 'no_stream', newEvents(1)), LogDamaged);
    for (let n = 0; n < 2; n++) {
      const health = await log.health();
      assert.deepEqual([health.ok, !health.ok && health.problem], [false, 'damaged']);
    }
  }));

test('a zeroed page of the index: its streams cannot be read, nothing is appended, the rest is read', () =>
  withFile(async ({ file, before, open }) => {
    zeroPageAt(file, offsetInIndex(file, streamName(10)));
    const log = await open();
    const named = (error: unknown) =>
      error instanceof LogDamaged && /at stream given-0010/.test(error.message);
    await assert.rejects(log.readStream(streamName(10)), named);
    assert.deepEqual(await log.readAll({ after: null, max: before.length }), before);
    await assert.rejects(log.append('zzzz', 'no_stream', newEvents(1)), LogDamaged);
    const health = await log.health();
    assert.deepEqual([health.ok, !health.ok && health.problem], [false, 'damaged']);
  }));

test('a changed name in the index hides a stream: a scan finds it, and then nothing is appended', () =>
  withFile(async ({ file, open }) => {
    hideInIndex(file, streamName(10));
    const log = await open();
    assert.equal((await scanned(log, false)).unindexed, 0);
    assert.equal((await log.health()).ok, true);
    const { damaged, unindexed } = await scanned(log);
    assert.ok(damaged.length === 0 && unindexed > 0, `${unindexed}`);
    const health = await log.health();
    assert.deepEqual([health.ok, !health.ok && health.problem], [false, 'damaged']);
    await assert.rejects(log.append(freshStream(), 'no_stream', newEvents(1)), EventLogUnavailable);
    await log.close();
    // The index is built again from the rows.
    reindex(file);
    const again = await open();
    assert.deepEqual(await again.checkFiles(), []);
    const { unindexed: left } = await scanned(again);
    assert.deepEqual([left, (await again.readStream(streamName(10))).length], [0, EACH]);
    assert.deepEqual(await again.health(), { ok: true });
  }));

test('damage to the index is known from the next start on, before anything is read', () =>
  withFile(async ({ file, open }) => {
    hideInIndex(file, streamName(10));
    const found = await open();
    await scanned(found);
    await found.close();

    const logger = collectingLogger();
    const log = await sqliteEventLog({ file, lockTimeoutMs: 200, logger, writes: true });
    try {
      const health = await log.health();
      assert.deepEqual([health.ok, !health.ok && health.problem], [false, 'damaged']);
      const named = /index lacks revision \d of stream given-0010 \(found at \d{4}-.+Z\); put back a backup/;
      const isNamed = (error: unknown) => error instanceof LogDamaged && named.test(error.message);
      await assert.rejects(log.append(streamName(10), 'no_stream', newEvents(1)), isNamed);
      const lines = logger.lines.filter(({ level }) => level === 'error');
      assert.deepEqual(
        lines.map(({ message }) => message),
        [sentenceOf('eventLog', 'damaged')],
      );
      const [{ fields } = assert.fail()] = lines;
      assert.ok(isNamed((fields as { readonly cause: unknown }).cause));
      assert.equal((await log.readStream(streamName(3))).length, EACH, 'what it has is answered');
    } finally {
      await log.close();
    }
  }));

test('what is known of the index ends when the whole log was read without damage to it', () =>
  withFile(async ({ file, before, open }) => {
    hideInIndex(file, streamName(10));
    // A row whose place the index has.
    flipByte(file, offsetOf(file, marker(40, 1)));
    const found = await open();
    await scanned(found);
    await found.close();
    reindex(file);

    const log = await open();
    const append = () => log.append(freshStream(), 'no_stream', newEvents(1));
    await scanned(log, false);
    await assert.rejects(append(), LogDamaged, 'the index was not read');
    const half = await log.scan({ after: null, max: 90, index: true });
    await log.scan({ after: positionOf(50, 0), max: 90, index: true });
    await assert.rejects(append(), LogDamaged, 'events between were not read');
    assert.equal(half.unindexed.length, 0);
    const { events } = await scanned(log);
    assert.equal(events.length, before.length - 1);
    await append();
    assert.equal((await log.health()).ok, true);
    assert.equal((await (await open()).health()).ok, true);
  }));

test('damage that one process finds stops the appends of all', () =>
  withFile(async ({ file, open }) => {
    const [first, other] = [await open(), await open()];
    hideInIndex(file, streamName(10));
    await other.append(freshStream(), 'no_stream', newEvents(1));
    await scanned(first);
    await assert.rejects(other.append(freshStream(), 'no_stream', newEvents(1)), LogDamaged);
    reindex(file);
    await scanned(first);
    await assert.rejects(
      first.append(freshStream(), 'no_stream', newEvents(1)),
      LogDamaged,
      'it has found it',
    );
    await assert.rejects(other.append(freshStream(), 'no_stream', newEvents(1)), LogDamaged);
    await scanned(other);
    await other.append(freshStream(), 'no_stream', newEvents(1));
  }));

test('damage that cannot be remembered is logged', () =>
  withFile(async ({ file, open }) => {
    hideInIndex(file, streamName(10));
    mkdirSync(`${file}.damaged/full`, { recursive: true });
    const logger = collectingLogger();
    const log = await open(logger);
    await scanned(log);
    const line = logger.lines.find(({ message }) => message.startsWith('damage to the event log cannot be'));
    assert.match(JSON.stringify(line?.fields), /events\.db\.damaged/);
    await assert.rejects(log.append(freshStream(), 'no_stream', newEvents(1)), LogDamaged);
  }));

test('a file of an older release: gets checksums from then on; what was stored before is not covered', () =>
  withFile(async ({ file, before, open }) => {
    const old = new DatabaseSync(file);
    old.exec('ALTER TABLE events DROP COLUMN checksum');
    old.close();
    flipByte(file, offsetOf(file, marker(20, 1)));
    const damagedJson = offsetOf(file, marker(40, 0)) - '{"text":"'.length;
    flipByte(file, damagedJson);
    const log = await open();
    await log.append(freshStream(), 'no_stream', newEvents(2));
    const { events, damaged, unchecked } = await scanned(log);
    assert.equal(unchecked, before.length - 1);
    // No checksum shows that a text has changed; what is no event is found all the same.
    assert.deepEqual(
      damaged.map(({ stream, revision, problem }) => [stream, revision, problem]),
      [[streamName(40), '0', 'changed']],
    );
    assert.equal(events.length, before.length - 1 + 2);
    const foreign = new DatabaseSync(file);
    assert.throws(() => foreign.exec('UPDATE events SET checksum = 1'), /append-only/);
    // The older release can still append.
    foreign.exec(
      `INSERT INTO events (stream, revision, id, type, created, data, metadata) VALUES ('old', 0, 'i', 'T', 0, '{}', '{}')`,
    );
    foreign.close();
    assert.equal((await log.readStream('old')).length, 1);
  }));

test('any changed byte, anywhere in the file: found, or without effect', () =>
  withFile(async ({ file, before }) => {
    const bytes = readFileSync(file);
    const copy = `${file}.copy`;
    let seed = 20261123;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return seed % below;
    };
    const seen = { found: 0, without: 0, refused: 0 };
    for (let n = 0; n < 400; n++) {
      const at = n < 100 ? (n % (bytes.length / PAGE_BYTES)) * PAGE_BYTES + random(16) : random(bytes.length);
      const spoilt = Uint8Array.from(bytes);
      spoilt[at] = (spoilt[at] ?? 0) ^ (1 << random(8));
      writeFileSync(copy, spoilt);
      for (const tail of ['-wal', '-shm']) writeFileSync(`${copy}${tail}`, '');
      const log = await sqliteEventLog({ file: copy, lockTimeoutMs: 0 }).catch((error: unknown) => {
        assert.ok(
          error instanceof OperatorError || error instanceof EventLogUnavailable,
          `byte ${at}: ${error}`,
        );
        return null;
      });
      if (log === null) {
        seen.refused++;
        continue;
      }
      try {
        const outcome = await judge(log, before);
        assert.notEqual(outcome, 'silent', `byte ${at}`);
        seen[outcome === 'found' ? 'found' : 'without']++;
      } finally {
        await log.close();
      }
    }
    assert.ok(seen.found > 150 && seen.without > 10, JSON.stringify(seen));
  }));

/** `silent`: a read answers something else than what was written, and no check of the file finds it. */
async function judge(log: EventLog & EventScan, before: readonly RecordedEvent[]) {
  const listed = await scanned(log).then(
    ({ damaged, unindexed }) => damaged.length + unindexed > 0,
    (error: unknown) => {
      assert.ok(error instanceof EventLogUnavailable, String(error));
      return true;
    },
  );
  let isRight = true;
  for (let n = 0; n < STREAMS; n++) {
    const expected = before.slice(n * EACH, (n + 1) * EACH);
    for (const direction of ['forwards', 'backwards'] as const) {
      const read = await log.readStream(streamName(n), { direction }).catch((error: unknown) => {
        assert.ok(error instanceof EventLogUnavailable, String(error));
        return null;
      });
      // An event that is read is the one that was written, whatever is damaged.
      for (const event of read ?? []) assert.deepEqual(event, expected[Number(event.revision)]);
      if (read === null || read.length < EACH) isRight = false;
    }
  }
  if (listed) return 'found';
  if (isRight) return 'without';
  return (await log.checkFiles().catch(() => ['unreadable']))?.length ? 'found' : 'silent';
}
