// Audits: an honest history of 60 jobs has no finding, and tampering with its export is reported with kind, stream,
// revision and job; what only kept keys and checkpoints reveal is reported with them. Each kind: test/usecases/audit.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { parseLine } from '#src/domain/audit/export-format.ts';
import { STREAM } from '#src/domain/events.ts';
import { type AuditHistory, auditHistory, copyInto, historyKeys } from '#test/support/given/audit-history.ts';
import {
  auditText,
  type Events,
  exportOf,
  jobsIn,
  type Kept,
  ofJob,
  renumbered,
} from '#test/support/given/audit-tampering.ts';
import { runCli } from '#test/support/process/cli.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('audit-journey');

/** One after the other: each has its own folder with a log, exported by the command. */
async function exported(name: string, history: AuditHistory): Promise<string> {
  const DATA_DIR = join(folder, name);
  await withLog(DATA_DIR, (log) => copyInto(log, history.events));
  const file = join(folder, `${name}.ndjson`);
  const { code, stderr } = await runCli(['export', '--out', file], { env: { DATA_DIR } });
  assert.deepEqual([code, stderr], [0, '']);
  return file;
}

let history: AuditHistory;
let file: string;
/** As the export has them. */
let events: Events;
let jobs: readonly string[];

before(async () => {
  history = await auditHistory({ jobs: 60 });
  file = await exported('honest', history);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1, -1);
  events = lines.map((text) => {
    const line = parseLine(text);
    assert.ok(line.kind === 'event');
    return line.event;
  });
  jobs = jobsIn(events);
});

const named = (text: string) => {
  const [kind = '', stream = '-', revision = '-', job = '-'] = text.split(' ');
  return { kind, stream, revision, job };
};

/**
 * `expected`: `kind stream revision jobId`, `-` for none. No finding may name another stream; findings of the whole log and
 * of checkpoints are allowed.
 */
async function isFound(tampered: Events | string, expected: readonly string[], kept: Kept = {}) {
  const text = typeof tampered === 'string' ? tampered : exportOf(tampered);
  const { findings } = await auditText(text, kept);
  const reported = findings.map(
    ({ kind, stream, revision, jobId }) => `${kind} ${stream ?? '-'} ${revision ?? '-'} ${jobId ?? '-'}`,
  );
  for (const line of expected)
    assert.ok(reported.includes(line), `${line}\nis not among\n${reported.join('\n')}`);
  const blamed = new Set(expected.map((line) => named(line).stream));
  for (const line of reported) {
    const { kind, stream } = named(line);
    assert.ok(
      blamed.has(stream) || kind.startsWith('checkpoint_'),
      `finding in an untouched stream: ${line}`,
    );
  }
}

test('an honest history has no finding, from the log and from its export, with kept keys and checkpoints', async () => {
  const jwks = join(folder, 'jwks.json');
  const checkpoint = join(folder, 'checkpoint.txt');
  writeFileSync(jwks, JSON.stringify(history.jwks));
  writeFileSync(checkpoint, history.checkpoints[2] ?? '');
  const args = ['audit', '--json', '--keys', jwks, '--checkpoint', checkpoint];
  const fromFile = await runCli([...args, '--events', file]);
  const fromLog = await runCli(args, { env: { DATA_DIR: join(folder, 'honest') } });
  assert.deepEqual([fromFile.code, fromLog.code], [0, 0]);
  // A slow machine gets lines of progress.
  assert.match(fromFile.stderr, /^(auditing: [^\n]+\n)*$/);
  const [ofFile, ofLog] = [fromFile, fromLog].map(({ stdout }) => JSON.parse(stdout).summary);
  assert.deepEqual({ ...ofFile, of: null }, { ...ofLog, of: null });
  const { ok, jobs, receipts, keys, checkpoints, treeSize, findings } = ofFile;
  assert.deepEqual(
    { ok, jobs, receipts, keys, checkpoints, treeSize, findings },
    { ok: true, jobs: 60, receipts: 60, keys: 3, checkpoints: 4, treeSize: 64, findings: 0 },
  );
});

test('a cut tail with a matching end line is found with a later kept checkpoint', async () => {
  const cut = events.slice(0, events.findIndex(ofJob(jobs[45] ?? '', 'JobStarted')));
  const { findings } = await auditText(exportOf(cut));
  assert.deepEqual(findings, []);
  const checkpoints = history.checkpoints.slice(-1);
  await isFound(cut, ['kept_checkpoint_ahead - - -'], { checkpoints });
});

test('a history rewritten without one job, with all keys, contradicts an older checkpoint', async () => {
  const rewritten = await auditHistory({ jobs: 60, keys: history.keys, without: 33 });
  const text = exportOf(rewritten.events);
  assert.deepEqual((await auditText(text, { jwks: history.jwks })).findings, [], 'it is consistent');
  // Checkpoints before the job are not affected; the last one covers one leaf more than the record has.
  const { findings } = await auditText(text, { checkpoints: history.checkpoints });
  assert.deepEqual(
    findings.map(({ kind }) => kind),
    history.checkpoints.slice(1).map((_, at, { length }) => {
      return at === length - 1 ? 'kept_checkpoint_ahead' : 'kept_checkpoint_root_mismatch';
    }),
  );
});

test('a relay that revokes its checkpoint key cannot rewrite what that key has signed', async () => {
  const rewritten = await auditHistory({ jobs: 20, keys: history.keys, without: 3 });
  const { keyId } = history.keys.checkpoint;
  const retired = { v: 1, keyId, reason: 'compromised', compromisedAt: '2026-01-01T00:00:00.000Z' };
  const [last] = rewritten.events.slice(-1);
  const [key] = rewritten.events.filter(({ stream }) => stream === STREAM.keys).slice(-1);
  assert.ok(last !== undefined && key !== undefined);
  const at = last.created;
  const disowned = renumbered([
    ...rewritten.events,
    {
      ...key,
      id: crypto.randomUUID(),
      type: 'SigningKeyRetired',
      data: { ...retired, effectiveAt: at, retiredAt: at },
    },
  ]);
  const { findings } = await auditText(exportOf(disowned), { checkpoints: history.checkpoints.slice(1, 2) });
  assert.deepEqual(
    findings.map(({ kind }) => kind),
    ['kept_checkpoint_root_mismatch'],
  );
});

test('a history rewritten with other keys contradicts a kept key set, or a kept checkpoint alone', async () => {
  const rewritten = await auditHistory({ jobs: 20, keys: historyKeys() });
  assert.deepEqual((await auditText(exportOf(rewritten.events))).findings, [], 'it is consistent');
  const { jwks } = history;
  const checkpoints = history.checkpoints.slice(1, 2);
  const untrusted = [0, 1, 2].map((revision) => `key_untrusted ${STREAM.keys} ${revision} -`);
  await isFound(rewritten.events, [...untrusted, 'key_missing - - -'], { jwks });
  await isFound(
    rewritten.events,
    [...untrusted, 'key_missing - - -', 'kept_checkpoint_root_mismatch - - -'],
    {
      jwks,
      checkpoints,
    },
  );
  const unsigned = 'kept_checkpoint_signature_invalid - - -';
  await isFound(rewritten.events, [unsigned, 'kept_checkpoint_root_mismatch - - -'], { checkpoints });
});
