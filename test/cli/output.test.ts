// Output that cannot be written changes the exit code; control characters in foreign text are escaped.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { jsonText, plain } from '#src/cli/terminal.ts';
import { auditHistory } from '#test/support/given/audit-history.ts';
import { exportOf, jobsIn, ofJob, without } from '#test/support/given/audit-tampering.ts';
import { appendAll, decisionAppend } from '#test/support/given/job-histories.ts';
import { runCli } from '#test/support/process/cli.ts';
import { rootPath, runtimeCommand } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('output');
const [clean, bad, DATA_DIR] = ['clean', 'bad', 'data'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];

before(async () => {
  const { events } = await auditHistory({ jobs: 3 });
  const [jobId = ''] = jobsIn(events);
  writeFileSync(clean, exportOf(events));
  writeFileSync(bad, exportOf(without(events, ofJob(jobId, 'ReceiptSigned'))));
  await withLog(DATA_DIR, (log) => appendAll(log, [decisionAppend(1)]));
});

type Output = 'full' | 'closed';

/** `full`: the disk is full. `closed`: the reader has closed the pipe before the first output. */
async function runWith(output: Output, args: readonly string[]) {
  const [command, given] = runtimeCommand('src/cli/relay.ts', args);
  const full = openSync('/dev/full', 'w');
  const child = spawn(command, given, {
    cwd: rootPath,
    env: { ...process.env, DATA_DIR },
    stdio: ['ignore', output === 'full' ? full : 'pipe', 'pipe'],
  });
  child.stdout?.destroy();
  closeSync(full);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = await once(child, 'close');
  return { code, stderr };
}

const FULL = 'relay: standard output cannot be written (ENOSPC)\n';
const CASES: readonly [args: () => readonly string[], output: Output, code: number, stderr: string][] = [
  [() => ['audit', '--events', clean], 'full', 2, FULL],
  [() => ['audit', '--events', clean], 'closed', 2, ''],
  [() => ['audit', '--events', bad], 'full', 1, FULL],
  [() => ['audit', '--events', bad, '--json'], 'closed', 1, ''],
];

test('lost output: exit 1 if a problem was found by then, else 2, and at most one line', async () => {
  await Promise.all(
    CASES.map(async ([args, output, code, stderr]) => {
      assert.deepEqual(await runWith(output, args()), { code, stderr }, `${args().join(' ')} ${output}`);
    }),
  );
});

test('an audit that is stopped or killed leaves no files behind', async () => {
  await Promise.all(
    (['SIGINT', 'SIGKILL'] as const).map(async (signal) => {
      const TMPDIR = mkdtempSync(join(folder, 'tmp-'));
      const [command, args] = runtimeCommand('src/cli/relay.ts', ['audit', '--events', '-', '--json']);
      const child = spawn(command, args, {
        env: { ...process.env, TMPDIR },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      child.stdin.on('error', () => undefined);
      child.stdin.write(`${exportOf([]).split('\n')[0]}\nno event\n`);
      // The finding is printed: the audit is running.
      await once(child.stdout, 'data');
      assert.deepEqual(readdirSync(TMPDIR), []);
      process.kill(child.pid ?? 0, signal);
      await once(child, 'close');
      assert.deepEqual(readdirSync(TMPDIR), []);
    }),
  );
});

/** CSI, DEL, direction overrides, characters without width, tags and a lone surrogate. */
const UNSAFE = [
  '\u009b',
  '\u007f',
  '\u001b',
  '\u202e',
  '\u2066',
  '\u061c',
  '\u200b',
  '\u200d',
  '\u2028',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\ufe0f',
  '\ufff9',
  '\u{e0041}',
  '\u{e007f}',
  '\ud800',
];

test('control and invisible characters are escaped', () => {
  for (const text of UNSAFE) {
    const escaped = text
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
    assert.equal(plain(`a${text}b`), `a${escaped}b`);
    assert.equal(jsonText([`a${text}b`]), `["a${escaped}b"]`);
  }
  for (const text of ['ordinary, with ü, 漢字 and 🙂', '\\u009b']) assert.equal(plain(text), text);
});

test('escaped JSON has the same value', () => {
  const value = { [`name${UNSAFE.join('')}`]: UNSAFE, more: ['\n\t"\\ü🙂', 1, null, { deep: [true] }] };
  for (const indent of [0, 2]) assert.deepEqual(JSON.parse(jsonText(value, indent)), value);
  assert.equal(jsonText({ a: ['b\n'] }, 2), JSON.stringify({ a: ['b\n'] }, null, 2));
});

test('findings as JSON contain no raw control characters', async () => {
  const event = { stream: 'job-\u009b31m\u202e', revision: '0' };
  const text = `${exportOf([]).split('\n')[0]}\n${JSON.stringify(event)}\n`;
  const { stdout } = await runCli(['audit', '--events', '-', '--json'], { stdin: text });
  assert.match(stdout, /job-\\u009b31m\\u202e/);
  assert.doesNotMatch(stdout, /[\u009b\u202e]/);
  assert.equal(JSON.parse(stdout.split('\n')[0] ?? '').finding.stream, event.stream);
});
