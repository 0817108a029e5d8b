// relay audit: options, output and exit codes. test/journeys/audit.test.ts covers the findings.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { findingTable } from '#src/cli/audit-report.ts';
import { endLine, eventLine, headLine } from '#src/domain/audit/export-format.ts';
import { STREAM } from '#src/domain/events.ts';
import { type AuditHistory, auditHistory } from '#test/support/given/audit-history.ts';
import { auditText, exportOf, jobsIn, ofJob, without } from '#test/support/given/audit-tampering.ts';
import { givenRecord } from '#test/support/given/audited-record.ts';
import { decisionAppend, newEvent } from '#test/support/given/job-histories.ts';
import { runCli } from '#test/support/process/cli.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { policyText } from '#test/support/witness/cosigned.ts';

const folder = testFolder('audit-cli');

function saved(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

let history: AuditHistory;
let honest: string;
before(async () => {
  history = await auditHistory({ jobs: 10 });
  honest = saved('honest.ndjson', exportOf(history.events));
});

const audit = (...args: string[]) => runCli(['audit', ...args]);

test('no problem: exit 0, and the scope of the audit', async () => {
  const { code, stdout, stderr } = await audit('--events', honest);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^✓ No problem was found\.\n/);
  assert.match(stdout, /10 jobs, 10 receipts, 3 keys, 2 checkpoints/);
  assert.match(stdout, /14 leaves, root [A-Za-z0-9+/]{43}=\n/);
  assert.match(stdout, /from the record itself; --keys/);
});

test('a problem: exit 1, and a table with kind, stream, revision, job and description', async () => {
  const [jobId = ''] = jobsIn(history.events);
  const job = STREAM.job(jobId);
  const tampered = without(history.events, ofJob(jobId, 'ReceiptSigned'));
  const { code, stdout, stderr } = await audit('--events', saved('tampered.ndjson', exportOf(tampered)));
  assert.deepEqual([code, stderr], [1, '']);
  const [titles = '', ...lines] = stdout.split('\n');
  assert.match(titles, /^kind +stream +revision +job +what is wrong/);
  const missing = lines.find((line) => line.startsWith('receipt_missing'))?.split(/ {2,}/);
  assert.deepEqual(missing?.slice(0, 4), ['receipt_missing', job, '2', jobId]);
  assert.ok((missing?.[4]?.length ?? 0) > 10, 'with a description');
  assert.match(stdout, /✗ \d problems were found\./);
});

test('a newer release has continued the record: exit 2, one finding; with a problem before that, exit 1', async () => {
  const [, , third = ''] = jobsIn(history.events);
  const from = history.events.findIndex(({ stream }) => stream === STREAM.job(third));
  const isTampered = (n: number, v: unknown) => (n === from - 1 ? 0 : v);
  const continued = (change = (_: number, v: unknown) => v) =>
    history.events.map((event, n) => {
      const { v } = event.data;
      return { ...event, data: { ...event.data, v: n < from ? change(n, v) : 99 } } as typeof event;
    });
  const { code, stdout } = await audit('--events', saved('continued.ndjson', exportOf(continued())));
  assert.equal(code, 2, stdout);
  assert.match(stdout, /^event_of_newer_release +job-/m);
  assert.equal(stdout.match(/^event_/gm)?.length, 1);
  assert.match(
    stdout,
    /✗ Not completed: a newer release has written here\. No problems were found before that\./,
  );
  const both = await audit('--events', saved('both.ndjson', exportOf(continued(isTampered))));
  assert.equal(both.code, 1, both.stdout);
  assert.match(both.stdout, /1 problem was found before that\./);
});

test('--json: a line for each finding, and the summary last', async () => {
  const [jobId = ''] = jobsIn(history.events);
  const tampered = without(history.events, ofJob(jobId, 'ReceiptSigned'));
  const { code, stdout } = await runCli(['audit', '--events', '-', '--json'], { stdin: exportOf(tampered) });
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { summary } = lines.pop();
  assert.equal(code, 1);
  assert.deepEqual([summary.ok, summary.of, summary.findings], [false, 'standard input', lines.length]);
  const { finding } = lines.find(({ finding: { kind } }) => kind === 'receipt_missing');
  assert.deepEqual(Object.keys(finding).sort(), [
    'jobId',
    'kind',
    'message',
    'position',
    'revision',
    'stream',
  ]);
});

test('a kept key set, and a kept checkpoint: bare or in an execution response', async () => {
  const jwks = saved('jwks.json', JSON.stringify(history.jwks));
  const note = history.checkpoints[1] ?? '';
  const bare = saved('checkpoint.txt', note);
  const answered = saved('answer.json', JSON.stringify({ ok: true, checkpoint: note }));
  const good = await audit(
    '--events',
    honest,
    '--keys',
    jwks,
    '--checkpoint',
    bare,
    '--checkpoint',
    answered,
  );
  assert.equal(good.code, 0, good.stdout + good.stderr);
  const older = exportOf(history.events.slice(0, 20));
  const cut = await runCli(['audit', '--events', '-', '--checkpoint', answered], { stdin: older });
  assert.equal(cut.code, 1);
  assert.match(cut.stdout, /^kept_checkpoint_ahead .*answer\.json/m);
});

test('problems of the file itself are findings', async () => {
  const [head = '', first = '', ...rest] = exportOf(history.events).trimEnd().split('\n');
  const end = rest.pop() ?? '';
  const kindsOf = async (...lines: readonly string[]) => {
    const { findings } = await auditText(`${lines.join('\n')}\n`);
    return findings.map(({ kind }) => kind);
  };
  assert.deepEqual(await kindsOf(head, first, ...rest, end), []);
  assert.deepEqual(await kindsOf(head, first, ...rest), ['export_cut']);
  assert.deepEqual(await kindsOf(head, first, ...rest, end, end), ['export_line_wrong']);
  assert.deepEqual(await kindsOf(head, first, ...rest, '', end), ['export_line_wrong']);
  // A valid event, but longer than any that a relay writes: it is not read.
  const { stream, events } = decisionAppend(1);
  const huge = newEvent({
    type: 'DecisionRecorded',
    data: { ...events[0]?.data, reasons: [{ code: 'x', message: 'x'.repeat(300_000) }] },
  });
  const created = '2026-01-02T03:04:05.678Z';
  const line = eventLine({ ...huge, stream, revision: 0n, position: '9'.repeat(20), created });
  assert.deepEqual(await kindsOf(head, first, ...rest, line, end), ['export_line_wrong']);
  for (const wrong of [
    end.replace(/"streams":\d+/, '"streams":1'),
    end.replace(/"events":\d+/, '"events":1'),
    end.replace(/"head":"\d+"/, '"head":null'),
  ]) {
    assert.deepEqual(await kindsOf(head, first, ...rest, wrong), ['export_end_mismatch']);
  }
  const renamed = head.replace('relay.example/receipts', 'other.example/receipts');
  const unnamed = headLine({ origin: null, from: null });
  for (const other of [renamed, unnamed]) {
    assert.deepEqual(await kindsOf(other, first, ...rest, end), ['export_origin_mismatch']);
    assert.deepEqual(await kindsOf(other, first, ...rest), ['export_origin_mismatch', 'export_cut']);
  }
  const none = { events: 0, streams: 0, head: null };
  assert.deepEqual(await kindsOf(head, endLine(none)), ['export_origin_mismatch']);
  assert.deepEqual(await kindsOf(unnamed, endLine(none)), []);
  const behind = await kindsOf(head, first, ...rest.slice(0, -1), end, ...rest.slice(-1));
  assert.ok(behind.includes('export_line_wrong') && behind.includes('export_end_mismatch'));
});

test('not an export, an export from the middle, a missing file, not text: exit 2, one line, and no verdict on the record', async () => {
  mkdirSync(join(folder, 'a-folder'));
  const none = { DATA_DIR: join(folder, 'nowhere') };
  const key = { use: 'sig' };
  const cases: [args: string[], problem: RegExp][] = [
    [['--events', saved('empty', '')], /is not an export/],
    [['--events', saved('other.json', '{"hello":1}\n')], /is not an export/],
    [['--events', saved('half', headLine({ origin: null, from: null }))], /is not an export/],
    [['--events', saved('middle', `${headLine({ origin: null, from: '7' })}\n`)], /begins in the middle/],
    [['--events', join(folder, 'missing')], /does not exist/],
    [['--events', join(folder, 'a-folder')], /is a folder/],
    [['--events', honest, '--keys', saved('keys', JSON.stringify([key]))], /is not a JWK set/],
    [['--events', honest, '--checkpoint', saved('note', 'hello\n')], /is not a checkpoint/],
    [['--events', honest, '--checkpoint', saved('note.json', '{"checkpoint":null}')], /is not a checkpoint/],
  ];
  for (const [args, problem] of cases) {
    const { code, stdout, stderr } = await runCli(['audit', ...args], { env: none });
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /^relay: [^\n]+\n$/);
    assert.match(stderr, problem);
  }
});

test('control characters are escaped, and only the first findings are shown', () => {
  const table = findingTable();
  for (let n = 0; n < 60; n++) {
    const stream = `job-\u001b[31m\n\u202e${n}`;
    table.add({ kind: 'revision_gap', stream, revision: '1', jobId: null, position: null, message: 'So.' });
  }
  const lines = table.lines();
  assert.equal(table.total(), 60);
  assert.equal(lines.length, 52);
  assert.equal(lines.at(-1), 'and 10 more: use --json to print all');
  assert.match(lines[1] ?? '', /job-\\u001b\[31m\\u000a\\u202e0/);
  assert.doesNotMatch(lines.join(''), /[\u001b\n\u202e]/);
});

/** 20 kB each. */
function* longDecisions(count: number): Generator<string> {
  yield `${headLine({ origin: null, from: null })}\n`;
  const filler = 'word '.repeat(4000);
  let head = null;
  for (let n = 0; n < count; n++) {
    const { stream, events } = decisionAppend(n);
    const [event] = events.map(newEvent);
    if (event === undefined) throw new Error('a decision is an event');
    const position = String(n + 1).padStart(20, '0');
    const data = { ...event.data, reasons: [{ code: `n${n}`, message: filler }] };
    const created = '2026-01-02T03:04:05.678Z';
    yield `${eventLine({ ...event, stream, revision: 0n, position, created, data })}\n`;
    head = position;
  }
  yield `${endLine({ events: count, streams: count, head })}\n`;
}

/** Peak memory of an audit from a pipe, read after all input is consumed and before the input ends. */
async function peakOf(count: number) {
  const [command, args] = runtimeCommand('src/cli/relay.ts', ['audit', '--events', '-', '--json']);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const ended = once(child, 'close');
  let sent = 0;
  for (const line of longDecisions(count)) {
    sent += line.length;
    if (!child.stdin.write(line)) await once(child.stdin, 'drain');
  }
  await new Promise((resolve) => child.stdin.write('', resolve));
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  child.stdin.end();
  await ended;
  const { summary } = JSON.parse(stdout);
  assert.deepEqual([summary.events, summary.findings], [count, 0]);
  const peakMiB = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  return { peakMiB, sentMiB: sent / 1024 / 1024 };
}

test('an audit needs less memory than the size of the record', async () => {
  const count = 12_500;
  const { peakMiB, sentMiB } = await peakOf(count);
  assert.ok(sentMiB > 235, `${sentMiB} MiB were sent`);
  assert.ok(peakMiB < sentMiB - 60, `${peakMiB} MiB of memory for ${sentMiB} MiB of events`);
});

test('--policy: cosignatures of its witnesses are verified and counted; a policy that is none: exit 2', async () => {
  const record = await givenRecord();
  await record.paid();
  await record.checkpoint();
  const witness = c2spKey('w.example', 4);
  await record.cosign([witness, Date.UTC(2026, 0, 2) / 1000]);
  const events = saved('cosigned.ndjson', exportOf(record.log.events));
  const policy = saved('witnesses.policy', policyText({ w: witness }, 'quorum w'));
  const { code, stdout } = await audit('--events', events, '--policy', policy);
  assert.equal(code, 0, stdout);
  assert.ok(
    stdout.includes(
      `  witnesses    1 checkpoint cosigned by a quorum of ${policy}, the largest of 3 leaves by 2026-01-02T00:00:00.000Z\n`,
    ),
    stdout,
  );
  const without = await audit('--events', events);
  assert.match(without.stdout, /\n {2}witnesses {4}cosignatures are not verified; --policy verifies/);
  const wrong = await audit('--events', events, '--policy', saved('wrong.policy', 'witness w\n'));
  assert.deepEqual([wrong.code, /line 1: a witness line is/.test(wrong.stderr)], [2, true]);
  const both = await audit('--integrity', '--policy', policy);
  assert.deepEqual([both.code, both.stderr], [2, 'relay: --integrity and --policy cannot be combined\n']);
});
