// relay export: the complete log as a file, byte for byte the same after any number of interruptions; and the files that
// it leaves unchanged.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { CannotRun } from '#src/cli/exit.ts';
import { readExisting } from '#src/cli/export-file.ts';
import { endLine, eventLine, headLine } from '#src/domain/audit/export-format.ts';
import { utf8 } from '#src/domain/encoding.ts';
import { STREAM } from '#src/domain/events.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { checkpointSigned } from '#test/support/given/given-events.ts';
import { appendAll, decisionAppend, jobAppends, newEvent, PLAN } from '#test/support/given/job-histories.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type RunningCli, startCli } from '#test/support/process/cli-process.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('export-cli');

const place = (name: string) => join(folder, name);

const decisions = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => decisionAppend(from + n));

/** The expected file, built independently of the command. */
async function expected(DATA_DIR: string, origin: string | null = null): Promise<string> {
  const events = await withLog(DATA_DIR, (log) => log.readAll({ after: null, max: 1_000_000 }));
  const streams = new Set(events.map(({ stream }) => stream)).size;
  const end = { events: events.length, streams, head: events.at(-1)?.position ?? null };
  return [headLine({ origin, from: null }), ...events.map(eventLine), endLine(end), ''].join('\n');
}

const exportTo = (DATA_DIR: string, file: string, ...more: string[]) =>
  runCli(['export', '--out', file, ...more], { env: { DATA_DIR } });

/** A log of 30 jobs and as many decisions, and its export. */
const small = place('small');
let whole: string;
before(async () => {
  const plans = Array.from({ length: 30 }, (_, seed) => ({ ...PLAN, seed }));
  await withLog(small, (log) =>
    appendAll(
      log,
      plans.flatMap((plan) => [decisionAppend(plan.seed), ...jobAppends(plan)]),
    ),
  );
  whole = await expected(small);
});

test('the complete log in order, in a file that only its owner can read', async () => {
  const file = place('whole');
  const { code, stdout, stderr } = await exportTo(small, file);
  const summary = `Exported 150 events of 60 streams to ${file}.\n`;
  assert.deepEqual([code, stdout, stderr], [0, summary, '']);
  assert.equal(readFileSync(file, 'utf8'), whole);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test('--json prints the result as JSON', async () => {
  const file = place('json');
  const json = await exportTo(small, file, '--json');
  const head = '00000000000000000150';
  const expectedJson = {
    file,
    origin: null,
    events: 150,
    streams: 60,
    head,
    added: 150,
    damagedEvents: 0,
    damaged: [],
  };
  assert.deepEqual([json.code, JSON.parse(json.stdout), json.stderr], [0, expectedJson, '']);
});

test('after a cut at any offset, a second run ends with the same bytes', async () => {
  const line = whole.indexOf('\n', 20_000);
  const end = whole.lastIndexOf('\n', whole.length - 2) + 1;
  const cuts = [
    0,
    5,
    40,
    whole.indexOf('\n') + 1,
    line - 100,
    line,
    line + 1,
    end,
    end + 10,
    whole.length - 1,
    whole.length + 1,
  ];
  for (const at of cuts) {
    const file = place(`cut-${at}`);
    // The last case: half a line after the end, as left by a run that was adding events.
    writeFileSync(`${file}.part`, at > whole.length ? `${whole}{"position":"0` : whole.slice(0, at));
    const { code, stderr } = await exportTo(small, file);
    assert.deepEqual([code, stderr], [0, ''], `cut at ${at}`);
    assert.equal(readFileSync(file, 'utf8'), whole, `cut at ${at}`);
    assert.equal(existsSync(`${file}.part`), false);
  }
});

test('a file under its own name that was cut afterwards is completed', async () => {
  const file = place('cut-later');
  writeFileSync(file, whole.slice(0, 20_000));
  assert.equal((await exportTo(small, file)).code, 0);
  assert.equal(readFileSync(file, 'utf8'), whole);
});

/** A log of 10,000 decisions, and an export of it into `file` that `signal` interrupts. */
let large: string;
before(async () => {
  large = place('large');
  await withLog(large, async (log) => {
    for (let from = 0; from < 10_000; from += 500) {
      await Promise.all(decisions(from, 500).map((append) => appendAll(log, [append])));
    }
  });
});

async function caught(file: string, signal: 'SIGKILL' | 'SIGSTOP'): Promise<RunningCli> {
  for (;;) {
    // Repeated if the run was faster than the signal.
    for (const name of [file, `${file}.part`]) rmSync(name, { force: true });
    const run = startCli(['export', '--out', file], { env: { DATA_DIR: large } });
    let over = false;
    const ended = run.ended.then(() => {
      over = true;
    });
    while (!over && (statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0) === 0)
      await setImmediate();
    send(run, signal);
    if (signal === 'SIGKILL') await ended;
    else while (!over && !isStopped(run.pid)) await setImmediate();
    if (!existsSync(file) && existsSync(`${file}.part`)) return run;
    send(run, 'SIGCONT');
    await ended;
  }
}

function send(run: RunningCli, signal: NodeJS.Signals): void {
  try {
    run.signal(signal);
  } catch (error) {
    // It has ended.
    if (systemCode(error) !== 'ESRCH') throw error;
  }
}

/** Whether all its threads are stopped: `kill` returns before the signal is delivered. */
function isStopped(pid: number): boolean {
  try {
    const states = readdirSync(`/proc/${pid}/task`).map((task) =>
      readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8'),
    );
    return states.every((state) => /^State:\s+T/m.test(state));
  } catch {
    // It, or a thread of it, has ended.
    return false;
  }
}

test('killed in the middle, it leaves no file under the final name, and the next run completes it', async () => {
  const file = place('killed');
  await caught(file, 'SIGKILL');
  assert.equal(existsSync(file), false);
  assert.ok(readFileSync(`${file}.part`, 'utf8').length > 0);
  assert.equal((await exportTo(large, file)).code, 0);
  assert.equal(readFileSync(file, 'utf8'), await expected(large));
});

test('killed while it continues a finished export, the finished export is unchanged', async () => {
  const file = place('kept');
  const finished = await expected(large);
  const lines = finished.split('\n');
  const end = { events: 5, streams: 5, head: JSON.parse(lines[5] ?? '').position };
  const earlier = [...lines.slice(0, 6), endLine(end), ''].join('\n');
  writeFileSync(file, earlier);
  const run = startCli(['export', '--out', file], { env: { DATA_DIR: large } });
  while ((statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0) === 0) await setImmediate();
  send(run, 'SIGKILL');
  await run.ended;
  assert.ok([earlier, finished].includes(readFileSync(file, 'utf8')));
  assert.equal((await exportTo(large, file)).code, 0);
  assert.equal(readFileSync(file, 'utf8'), finished);
});

test('two runs never write the same file: the second exits with 2, and the first writes the complete log', async () => {
  const file = place('shared');
  const first = await caught(file, 'SIGSTOP');
  try {
    const second = await exportTo(large, file);
    assert.deepEqual([second.code, second.stdout], [2, '']);
    assert.match(second.stderr, /^relay: \S+ is being written by another relay export: [^\n]+\n$/);
  } finally {
    first.signal('SIGCONT');
  }
  assert.equal((await first.ended).code, 0);
  assert.equal(readFileSync(file, 'utf8'), await expected(large));
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('shared')),
    ['shared'],
    'no lock and no part remain',
  );
});

test('a symbolic link is kept: the file that it names is continued', async () => {
  const [file, link] = [place('linked'), place('link')];
  writeFileSync(file, '');
  symlinkSync(file, link);
  assert.equal((await exportTo(small, link)).code, 0);
  assert.equal(lstatSync(link).isSymbolicLink(), true);
  assert.equal(readFileSync(file, 'utf8'), whole);
});

test('a finished export is continued with newer events, and is unchanged if there are none', async () => {
  const DATA_DIR = place('growing');
  const file = place('grown');
  await withLog(DATA_DIR, (log) => appendAll(log, decisions(0, 3)));
  await exportTo(DATA_DIR, file);
  const { mtimeNs } = statSync(file, { bigint: true });
  const again = await exportTo(DATA_DIR, file, '--json');
  assert.equal(JSON.parse(again.stdout).added, 0);
  assert.equal(statSync(file, { bigint: true }).mtimeNs, mtimeNs);
  await withLog(DATA_DIR, (log) => appendAll(log, decisions(3, 2)));
  const more = await exportTo(DATA_DIR, file, '--json');
  assert.deepEqual([more.code, JSON.parse(more.stdout).added, JSON.parse(more.stdout).events], [0, 2, 5]);
  assert.equal(readFileSync(file, 'utf8'), await expected(DATA_DIR));
});

test('the first line names a transparency log that was started after the first export', async () => {
  const DATA_DIR = place('born');
  const file = place('born.ndjson');
  await withLog(DATA_DIR, (log) => appendAll(log, decisions(0, 2)));
  await exportTo(DATA_DIR, file);
  await withLog(DATA_DIR, (log) =>
    log.append(STREAM.receiptLog, 'no_stream', [newEvent(checkpointSigned())]),
  );
  const { code } = await exportTo(DATA_DIR, file);
  assert.equal(code, 0);
  assert.equal(readFileSync(file, 'utf8'), await expected(DATA_DIR, 'relay.example/receipts'));
});

test('an empty log is exported, too', async () => {
  const DATA_DIR = place('empty');
  const file = place('empty.ndjson');
  await withLog(DATA_DIR, async () => undefined);
  assert.equal((await exportTo(DATA_DIR, file)).code, 0);
  assert.equal(readFileSync(file, 'utf8'), await expected(DATA_DIR));
});

test('a file that is not an export of this log is refused with exit 2 and left unchanged', async () => {
  const DATA_DIR = place('other');
  await withLog(DATA_DIR, (log) => appendAll(log, decisions(100, 5)));
  const lines = whole.split('\n');
  const withOther = (at: number) =>
    whole.replace(lines.at(at) ?? '', (line) => line.replace(/"id":"[^"]+"/, `"id":"${randomUUID()}"`));
  const cases: [text: string, problem: RegExp][] = [
    [withOther(-3), /is an export of another log/],
    ['my thesis', /is not an export/],
    [await expected(DATA_DIR), /is an export of another log/],
    [whole.replace('"from":null', '"from":"7"'), /begins in the middle of a log/],
  ];
  for (const [n, [text, problem]] of cases.entries()) {
    const file = place(`refused-${n}`);
    writeFileSync(file, text);
    const { code, stdout, stderr } = await exportTo(small, file);
    assert.deepEqual([code, stdout], [2, ''], String(problem));
    assert.match(stderr, /^relay: [^\n]+\n$/);
    assert.match(stderr, problem);
    assert.equal(readFileSync(file, 'utf8'), text);
  }
});

test('a file that no export can have written is refused with the number of the wrong line', async () => {
  const [head, first, second, ...rest] = whole.split('\n');
  const cases: [text: string, problem: RegExp][] = [
    ['my thesis\n', /is not an export/],
    [[head, second, first, ...rest].join('\n'), /line 3: it is out of order/],
    [whole.replace('"revision":"0"', '"revision":"00"'), /line 2: it is neither an event nor the end/],
    [`${whole}${first}\n`, /line 153: it follows the end/],
    [whole.replace('"streams":60', '"streams":61'), /line 152: its counts differ/],
  ];
  for (const [text, problem] of cases) {
    async function* chunks() {
      yield utf8(text);
    }
    await assert.rejects(
      readExisting('the file', chunks(), () => undefined),
      (error) => error instanceof CannotRun && problem.test(error.message),
      String(problem),
    );
  }
});

test('a path that cannot be a file, or a missing log: exit 2, and nothing is created', async () => {
  mkdirSync(place('a-folder'));
  const cases: [DATA_DIR: string, out: string, problem: RegExp][] = [
    [small, place('a-folder'), /is not a file/],
    [small, join(place('no-folder'), 'file'), /is in a folder that does not exist/],
    [small, '/dev/null', /is not a file/],
  ];
  for (const [DATA_DIR, out, problem] of cases) {
    const { code, stdout, stderr } = await exportTo(DATA_DIR, out);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, problem);
  }
  assert.deepEqual([place('never'), place('no-log'), place('no-folder')].map(existsSync), [
    false,
    false,
    false,
  ]);
});
