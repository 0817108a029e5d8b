// The state of an audit in a file: kept as a whole or not at all, for one audit at a time, and refused when it is damaged.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { sqliteAuditState } from '#src/adapters/audit/state-sqlite.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { AuditState } from '#src/ports/audit-scratch.ts';
import { rootPath, runtimeCommand } from '#test/support/process/runtime.ts';

const folder = mkdtempSync(join(tmpdir(), 'state-test-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
const newFile = () => join(folder, `state-${++files}`);

/** A run on the state; it is saved unless `save` is false. */
function run(file: string, work: (state: AuditState<string>) => void, save = true): void {
  const state = sqliteAuditState<string>(file);
  try {
    work(state);
    if (save) state.save();
  } finally {
    state.close();
  }
}

const repeatedIn = (state: AuditState<string>) =>
  [...state.repeated()].map(({ value, place }) => `${value} ${place}`);
const openIn = (state: AuditState<string>) => state.open('k', null, 10).map(({ key }) => key);

test('a later run continues with the values, the open keys and the noted values of the runs before', () => {
  const file = newFile();
  run(file, (state) => {
    state.put('k1', 'one', undefined, true);
    state.put('k2', 'two', undefined, true);
    for (const value of ['a', 'b', 'b']) state.note(value, `${value} first`);
    assert.deepEqual(repeatedIn(state), ['b b first']);
  });
  run(file, (state) => {
    assert.deepEqual([state.get('k1'), state.get('k2'), state.get('k3')], ['one', 'two', null]);
    assert.deepEqual(openIn(state), ['k1', 'k2']);
    state.put('k1', 'over');
    state.note('c', 'c second');
    state.note('a', 'a second');
    assert.deepEqual(repeatedIn(state), ['a a second', 'b b first']);
  });
  run(file, (state) => {
    assert.deepEqual(openIn(state), ['k2']);
    assert.deepEqual([...state.values('k')], ['over', 'two']);
    assert.deepEqual(repeatedIn(state), ['a a second', 'b b first']);
  });
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('state-1')),
    ['state-1'],
  );
});

test('the file is readable by its owner only, whatever its mode was', () => {
  const file = newFile();
  run(file, (state) => state.put('k', 'v'));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  chmodSync(file, 0o644);
  run(file, (state) => state.put('k', 'w'));
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test('a run that is not saved leaves no file, or the file as it was', () => {
  const file = newFile();
  run(file, (state) => state.put('k', 'v'), false);
  assert.deepEqual([existsSync(file), existsSync(`${file}.new`)], [false, false]);
  run(file, (state) => state.put('k', 'v'));
  const before = readFileSync(file);
  run(
    file,
    (state) => {
      // More than the buffer keeps.
      for (let n = 0; n < 100_000; n++) state.put(`more ${n}`, 'x'.repeat(200));
    },
    false,
  );
  assert.ok(before.equals(readFileSync(file)));
});

test('what a run that was killed has left beside the name is replaced', () => {
  const file = newFile();
  writeFileSync(`${file}.new`, '');
  run(file, (state) => state.put('k', 'v'));
  run(file, (state) => assert.equal(state.get('k'), 'v'));
  assert.equal(existsSync(`${file}.new`), false);
});

/** Of a process that has written to the file, in a transaction of 48 MB, and is killed. */
async function killedRun(file: string): Promise<void> {
  const script = new URL('./audit-state-process.ts', import.meta.url).pathname;
  const [command, args] = runtimeCommand(script, [file]);
  const child = spawn(command, args, { cwd: rootPath, stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = await once(child.stdout, 'data');
  assert.equal(String(text), 'written\n');
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  assert.deepEqual(await ended, [null, 'SIGKILL']);
}

test('a run that is killed leaves no file, or the values of the run before', async () => {
  const file = newFile();
  await killedRun(file);
  assert.deepEqual([existsSync(file), existsSync(`${file}.new`)], [false, true]);
  run(file, (state) => {
    assert.equal(state.get('k 1'), null);
    for (const n of [1, 2, 3]) state.put(`k ${n}`, `value ${n}`, undefined, n === 2);
  });
  assert.equal(existsSync(`${file}.new`), false);
  await killedRun(file);
  run(file, (state) => {
    assert.deepEqual([...state.values('k')], ['value 1', 'value 2', 'value 3']);
    assert.deepEqual(openIn(state), ['k 2']);
  });
  assert.equal(existsSync(`${file}-journal`), false);
});

test('a new state is whole where the one before was deleted after a run on it was killed', async () => {
  const file = newFile();
  const values = (count: number, text: string) => Array.from({ length: count }, (_, n) => `${text} ${n}`);
  const put = (all: readonly string[]) =>
    run(file, (state) => {
      all.forEach((value, n) => {
        state.put(`k ${String(n).padStart(5, '0')}`, value);
      });
    });
  put(values(2000, 'old'));
  await killedRun(file);
  rmSync(file);
  assert.ok(existsSync(`${file}-journal`));
  put(values(3000, 'new'));
  run(file, (state) => assert.deepEqual([...state.values('k')], values(3000, 'new')));
});

test('one audit at a time uses it', () => {
  const file = newFile();
  const isUsed = (error: unknown) =>
    error instanceof OperatorError && /is used by another audit$/.test(error.message);
  const first = sqliteAuditState<string>(file);
  assert.throws(() => sqliteAuditState(file), isUsed);
  first.save();
  const second = sqliteAuditState<string>(file);
  assert.throws(() => sqliteAuditState(file), isUsed);
  second.close();
  run(file, () => undefined);
});

test('a damaged file, or another one, is refused and stays as it is', () => {
  const whole = newFile();
  run(whole, (state) => {
    for (let n = 0; n < 2000; n++) state.put(`k ${n}`, `value ${n} `.repeat(20), undefined, n === 7);
    for (const place of ['here', 'there']) state.note('a', place);
    assert.deepEqual(repeatedIn(state), ['a there']);
  });
  const bytes = readFileSync(whole);
  const damaged: ((file: string) => void)[] = [
    (file) => writeFileSync(file, ''),
    (file) => writeFileSync(file, 'no state of an audit at all\n'.repeat(100)),
    (file) => truncateSync(file, bytes.length - 4096),
    (file) => truncateSync(file, 100),
    (file) => new DatabaseSync(file).exec('PRAGMA user_version = 4'),
    // Rows whose run or filter is gone would not be found any more, and what is open or repeated would not be reported.
    ...['runs', 'filters', 'contents', 'open_keys', 'notes', 'repeats'].map(
      (table) => (file: string) => new DatabaseSync(file).exec(`DELETE FROM ${table}`),
    ),
    (file) => new DatabaseSync(file).exec("UPDATE open_keys SET key = 'l' || substr(key, 2)"),
    (file) => {
      rmSync(file);
      new DatabaseSync(file).exec('CREATE TABLE other (a)');
    },
  ];
  for (const damage of damaged) {
    const file = newFile();
    copyFileSync(whole, file);
    damage(file);
    const before = readFileSync(file);
    assert.throws(() => run(file, () => undefined), OperatorError);
    assert.ok(before.equals(readFileSync(file)));
  }
  // A byte within a value, and pages of zeros: noticed when they are read.
  const at = bytes.indexOf('value 1234 value');
  const changed = Buffer.from(bytes);
  changed[at] = 'w'.charCodeAt(0);
  const zeroed = Buffer.from(bytes).fill(0, 4096 * 3);
  for (const content of [changed, zeroed]) {
    const file = newFile();
    writeFileSync(file, content);
    const isRefused = (error: unknown) =>
      error instanceof OperatorError && /is damaged, or is not the state of an audit/.test(error.message);
    assert.throws(() => run(file, (state) => void [...state.values('k')]), isRefused);
    assert.throws(() => run(file, (state) => void state.get('k 1234')), isRefused);
  }
});
