import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import {
  assertGlobalOrder,
  assertWholeStreams,
  follow,
  ids,
  newEvents,
  within,
} from '#test/support/contract/event-log-fixtures.ts';
import { startProgram } from '#test/support/log/event-log-process.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';

const WRITER = new URL('./event-log-writer.ts', import.meta.url).href;

async function withFile(body: (log: EventLog, file: string) => Promise<void>): Promise<void> {
  const { file, remove } = logDirectory();
  const log = await sqliteEventLog({ file });
  try {
    await body(log, file);
  } finally {
    await log.close();
    remove();
  }
}

test('sqlite: three writer processes and this one: a subscriber receives every event once, in order, without gaps', () =>
  withFile(async (log, file) => {
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    const programs = ['a', 'b', 'c'].map((name) => startProgram(WRITER, [file, name, '300', '4']));
    const [first] = programs;
    await within(first?.printed(1) ?? Promise.reject(), 'the first writer');
    for (let n = 0; n < 200; n++) await log.append(`own-${n}`, 'no_stream', newEvents(1));
    for (const { ended } of programs) {
      const { code, stderr } = await within(ended, 'a writer');
      assert.equal(code, 0, stderr);
    }
    const total = 3 * 600 + 200;
    await follower.until(() => follower.events().length >= total, `${total} events`);
    await follower.stop();
    const events = follower.events();
    assert.equal(events.length, total);
    assertGlobalOrder(events);
    assertWholeStreams(events);
    // Positions number the commits: an event could still appear in a gap, before the subscriber's position.
    assert.deepEqual(
      events.map((event) => Number(event.position)),
      Array.from({ length: total }, (_, i) => i + 1),
    );
    const seen = new Set(ids(events));
    for (const { lines } of programs) assert.ok(lines.length === 300 && lines.every((id) => seen.has(id)));
    assert.deepEqual(events, await log.readAll({ after: null, max: total + 1 }));
  }));

test('sqlite: kill -9 of a writer process, five times: no acknowledged event is lost, no append is stored partly', () =>
  withFile(async (log, file) => {
    const follower = follow(log, { after: null });
    const acknowledged: string[] = [];
    for (const [round, goal] of [1, 20, 75, 150, 300].entries()) {
      const { child, lines, printed, ended } = startProgram(WRITER, [file, `round${round}`, '0', '8']);
      await within(printed(goal), `${goal} acknowledgements`);
      child.kill('SIGKILL');
      const { stderr } = await within(ended, 'the killed writer');
      assert.ok(lines.length >= goal, stderr);
      acknowledged.push(...lines);
      // This process's handle can append at once.
      await log.append(`between-${round}x`, 'no_stream', newEvents(2));
    }
    const stored = await log.readAll({ after: null, max: 1_000_000 });
    const known = new Set(ids(stored));
    assert.deepEqual(
      acknowledged.filter((id) => !known.has(id)),
      [],
    );
    assertWholeStreams(stored);
    const sizes = new Map<string, number>();
    for (const { stream } of stored) sizes.set(stream, (sizes.get(stream) ?? 0) + 1);
    for (const [stream, size] of sizes) assert.equal(size % 2, 0, `${stream} holds half an append`);
    await follower.until(() => follower.events().length >= stored.length, 'the tail');
    await follower.stop();
    assert.deepEqual(follower.events(), stored);
  }));

test('sqlite: kill -9 of a process that appends to two streams together: each pair is whole or absent', () =>
  withFile(async (log, file) => {
    const acknowledged: string[] = [];
    for (const goal of [1, 40, 150]) {
      const args = [file, `pair${goal}`, '0', '8', 'together'];
      const { child, lines, printed, ended } = startProgram(WRITER, args);
      await within(printed(goal), `${goal} acknowledgements`);
      child.kill('SIGKILL');
      const { stderr } = await within(ended, 'the killed writer');
      assert.ok(lines.length >= goal, stderr);
      acknowledged.push(...lines);
    }
    const stored = await log.readAll({ after: null, max: 1_000_000 });
    const known = new Set(ids(stored));
    assert.deepEqual(
      acknowledged.filter((id) => !known.has(id)),
      [],
    );
    assert.equal(stored.length % 2, 0);
    for (let i = 0; i < stored.length; i += 2) {
      const [first, second] = stored.slice(i, i + 2);
      assert.deepEqual(
        [second?.stream, second?.revision],
        [first?.stream.replace(/-0$/, '-1'), first?.revision],
      );
    }
  }));

test(
  'sqlite: a full disk: unavailable, nothing stored partly; appends succeed later without a restart',
  // prlimit (util-linux) sets and removes the limit of file sizes: SQLite's writes fail.
  { skip: spawnSync('prlimit', ['--version']).status !== 0 },
  () =>
    withFile(async (log, file) => {
      const limit = ['sh', '-c', 'trap "" XFSZ; exec prlimit --fsize=1000000:unlimited "$@"', 'sh'];
      const program = startProgram(WRITER, [file, 'full', '1500', '4'], limit);
      const failed = () => program.lines.filter((line) => line.startsWith('unavailable'));
      await within(program.printed(1, 'unavailable'), 'the full disk');
      const lifted = spawnSync('prlimit', [
        '--pid',
        String(program.child.pid),
        '--fsize=unlimited:unlimited',
      ]);
      assert.equal(lifted.status, 0, String(lifted.stderr));
      const { code, stderr } = await within(program.ended, 'the writer');
      assert.equal(code, 0, stderr);
      assert.match(failed()[0] ?? '', /^unavailable, health false: .*(disk|full|I\/O)/);
      const stored = await log.readAll({ after: null, max: 10_000 });
      assert.equal(stored.length, 3000);
      assertWholeStreams(stored);
      const acknowledged = program.lines.filter((line) => !line.startsWith('unavailable'));
      const known = new Set(ids(stored));
      assert.ok(acknowledged.length === 1500 && acknowledged.every((id) => known.has(id)));
      assert.equal(known.size, 3000);
    }),
);
