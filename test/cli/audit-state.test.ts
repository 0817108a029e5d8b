// relay audit --state: a run continues the one before, and refuses a log that is not the one that it has audited.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { before, test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { type AuditHistory, auditHistory } from '#test/support/given/audit-history.ts';
import { runCli } from '#test/support/process/cli.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { appendAll } from '#test/support/world/service-log.ts';

const folder = testFolder('audit-state-cli');

let history: AuditHistory;
before(async () => {
  history = await auditHistory({ jobs: 10 });
});

let folders = 0;

/** A data directory with a log of these events. */
async function dataDir(events: readonly RecordedEvent[]): Promise<string> {
  const path = join(folder, `data-${++folders}`);
  mkdirSync(path);
  await append(path, events);
  return path;
}

async function append(path: string, events: readonly RecordedEvent[]): Promise<void> {
  const log = await sqliteEventLog({ file: join(path, 'events.db') });
  await appendAll(log, events);
  await log.close();
}

const audit = (DATA_DIR: string, ...args: string[]) => runCli(['audit', ...args], { env: { DATA_DIR } });

/** Of the line that `--json` prints last, after the findings. */
async function audited(path: string, ...args: string[]) {
  const { code, stdout, stderr } = await audit(path, '--json', ...args);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { summary } = lines.pop();
  return { code, stderr, findings: lines.map(({ finding }) => finding), summary };
}

/** A copy of the state without rows that it must have. */
async function refusedWithout(keys: string, file: string, path: string, ...args: string[]): Promise<void> {
  const damaged = join(folder, 'damaged.state');
  copyFileSync(file, damaged);
  const db = new DatabaseSync(damaged);
  db.exec(`DELETE FROM scratch WHERE key GLOB '${keys}'`);
  db.close();
  const { code, stdout, stderr } = await audit(path, '--state', damaged, ...args);
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /is damaged, or is not the state of an audit: delete it/);
}

test('a later run reads only what is new, and reports what an audit of the complete log reports', async () => {
  const { events } = history;
  // Without a receipt, so that there is a finding of an event and one of the end in each run.
  const [receipt] = events.filter(({ type }) => type === 'ReceiptSigned');
  assert.ok(receipt);
  const wrong = events.flatMap((event) =>
    event === receipt
      ? []
      : event.stream === receipt.stream && event.revision > receipt.revision
        ? []
        : [event],
  );
  const cut = wrong.length - 20;
  const path = await dataDir(wrong.slice(0, cut));
  const file = join(folder, 'grown.state');
  const first = await audited(path, '--state', file);
  assert.deepEqual(first.summary.state, { file, newEvents: cut, saved: true });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await append(path, wrong.slice(cut));
  const second = await audited(path, '--state', file);
  assert.equal(second.summary.state.newEvents, 20);
  const whole = await audited(path);
  assert.deepEqual([second.code, second.findings], [1, whole.findings]);
  assert.ok(whole.findings.length > 0);
  assert.deepEqual({ ...second.summary, state: null }, whole.summary);
  await refusedWithout('finding 0*', file, path);
  const third = await audit(path, '--state', file);
  assert.match(third.stdout, new RegExp(`\\n {2}state {8}0 events audited in this run; kept in ${file}\\n`));
});

test('a log that lacks the last checkpoint is refused: exit 1, and the state stays as it is', async () => {
  const { events } = history;
  const path = await dataDir(events);
  const file = join(folder, 'rewritten.state');
  assert.equal((await audit(path, '--state', file)).code, 0);
  const checkpoint = join(folder, 'kept.checkpoint');
  writeFileSync(checkpoint, history.checkpoints[1] ?? '');
  await refusedWithout('*', file, path);
  await refusedWithout('leaf *', file, path, '--checkpoint', checkpoint);
  const before = readFileSync(file);
  const other = await dataDir((await auditHistory({ jobs: 10 })).events);
  const shorter = await dataDir(events.slice(0, -10));
  for (const log of [other, shorter]) {
    const { code, stdout, stderr } = await audit(log, '--state', file);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^relay: the log does not contain the checkpoint of \d+ leaves, with which .+ ends: it was/,
    );
    assert.ok(before.equals(readFileSync(file)));
  }
  assert.equal((await audit(path, '--state', file)).code, 0);
});

test('what cannot be continued: exit 2, one line, and no file is changed', async () => {
  const path = await dataDir(history.events);
  const file = join(folder, 'kept.state');
  assert.equal((await audit(path, '--state', file)).code, 0);
  const jwks = join(folder, 'jwks.json');
  writeFileSync(jwks, JSON.stringify(history.jwks));
  const text = join(folder, 'text.state');
  writeFileSync(text, 'something else\n');
  const empty = join(folder, 'empty.state');
  writeFileSync(empty, '');
  const log = join(folder, 'log.state');
  copyFileSync(join(path, 'events.db'), log);
  const cases: [args: string[], problem: RegExp][] = [
    [['--state', file, '--keys', jwks], /was made with other --keys or another --policy/],
    [['--state', text], /is damaged, or is not the state of an audit/],
    [['--state', empty], /is damaged, or is not the state of an audit/],
    [['--state', log], /is a database, but not the state of an audit/],
    [['--state', file, '--events', '-'], /--state and --events cannot be combined/],
    [['--state', file, '--integrity'], /--integrity and --state cannot be combined/],
  ];
  for (const [args, problem] of cases) {
    const target = args[1] ?? '';
    const before = readFileSync(target);
    const { code, stdout, stderr } = await audit(path, ...args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /^relay: [^\n]+\n$/);
    assert.match(stderr, problem);
    assert.ok(before.equals(readFileSync(target)), args.join(' '));
  }
  const nowhere = await audit(path, '--state', join(folder, 'no', 'folder'));
  assert.equal(nowhere.code, 2, nowhere.stderr);
});

test('where the node of --rpc gives no answer, the state of the record is kept', async () => {
  const path = await dataDir(history.events);
  const file = join(folder, 'node.state');
  const silent = ['--rpc', 'http://127.0.0.1:9'];
  assert.equal((await audit(path, '--state', file, ...silent)).code, 2);
  assert.ok(existsSync(file));
  assert.equal((await audited(path, '--state', file)).summary.state.newEvents, 0);
});
