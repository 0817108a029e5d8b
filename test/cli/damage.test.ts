// relay audit, relay audit --integrity and relay export on a damaged file: each lists the damage and continues behind it.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { damageLine, endLine, eventLine, headLine } from '#src/domain/audit/export-format.ts';
import type { Damage } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { appendAll, decisionAppend, jobAppends, PLAN } from '#test/support/given/job-histories.ts';
import { flipByte, hideInIndex, offsetOf } from '#test/support/log/damaged-file.ts';
import { runCli } from '#test/support/process/cli.ts';
import { eventsOf, withLog } from '#test/support/world/service-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-damage-cli-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** As they were written: 30 jobs, and as many decisions. */
let written: readonly RecordedEvent[];
const whole = join(folder, 'whole');
before(async () => {
  written = await withLog(whole, async (log) => {
    for (let seed = 0; seed < 30; seed++)
      await appendAll(log, [decisionAppend(seed), ...jobAppends({ ...PLAN, seed })]);
    return eventsOf(log);
  });
});

const eventAt = (n: number): RecordedEvent => written[n] ?? assert.fail();

/** A copy of the log whose file `spoil` has changed. */
function damagedLog(name: string, spoil: (file: string) => void) {
  const DATA_DIR = join(folder, name);
  cpSync(whole, DATA_DIR, { recursive: true });
  const file = join(DATA_DIR, 'events.db');
  spoil(file);
  const run = (...args: string[]) => runCli(args, { env: { DATA_DIR } });
  const json = async (...args: string[]) => {
    const { code, stdout } = await run(...args, '--json');
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return { code, findings: lines.flatMap(({ finding }) => finding ?? []), summary: lines.at(-1)?.summary };
  };
  return { DATA_DIR, file, run, json };
}

const damageOf = ({ position, stream, revision }: RecordedEvent, problem: Damage['problem']): Damage => ({
  from: position,
  to: position,
  stream,
  revision: String(revision),
  problem,
});
const kindsAt = (
  findings: readonly { kind: string; stream: string | null; revision: string | null }[],
  kind: string,
) =>
  findings.filter((finding) => finding.kind === kind).map(({ stream, revision }) => `${stream} ${revision}`);
const named = ({ stream, revision }: { stream: string | null; revision: unknown }) => `${stream} ${revision}`;

test('a whole log: nothing is damaged, and only the options that fit are taken', async () => {
  const { run, json } = damagedLog('sound', () => undefined);
  const { code, stdout } = await run('audit', '--integrity');
  assert.equal(code, 0, stdout);
  assert.match(
    stdout,
    /The log is stored as it was written\.\n {2}events +150 events of 60 streams, .*damaged: 0\n {2}checksums +of all events compared\n {2}files +checked by SQLite\n$/,
  );
  assert.deepEqual((await json('audit', '--integrity')).summary, {
    ok: true,
    events: 150,
    streams: 60,
    damaged: 0,
    head: eventAt(149).position,
    unchecked: 0,
    filesChecked: true,
    findings: 0,
  });
  const both = await run('audit', '--integrity', '--events', 'x');
  assert.deepEqual([both.code, both.stderr], [2, 'relay: --integrity and --events cannot be combined\n']);
});

test('one changed byte: audit, integrity and export name the event; a repaired log is exported whole again', async () => {
  const lost = eventAt(61);
  const { file, run, json } = damagedLog('byte', (path) => flipByte(path, offsetOf(path, lost.id)));
  const integrity = await json('audit', '--integrity');
  assert.equal(integrity.code, 1);
  assert.deepEqual(kindsAt(integrity.findings, 'event_damaged'), [named(lost)]);
  assert.deepEqual(
    [integrity.findings.length, integrity.summary.damaged, integrity.summary.events],
    [1, 1, 149],
  );

  const audit = await json('audit');
  assert.equal(audit.code, 1);
  assert.deepEqual(kindsAt(audit.findings, 'event_damaged'), [named(lost)]);
  assert.deepEqual([audit.summary.damaged, audit.summary.events], [1, 149]);
  assert.match((await run('audit')).stdout, /damage +1 event; other problems may follow from that/);

  const out = join(folder, 'byte.ndjson');
  const damage = damageOf(lost, 'changed');
  const exported = await run('export', '--out', out, '--json');
  assert.deepEqual([exported.code, JSON.parse(exported.stdout).damaged], [1, [damage]]);
  const end = { events: 149, streams: lost.revision === 0n ? 59 : 60, head: eventAt(149).position };
  const lines = written.map((event) => (event === lost ? damageLine(damage) : eventLine(event)));
  const expected = [headLine({ origin: null, from: null }), ...lines, endLine(end), ''].join('\n');
  assert.equal(readFileSync(out, 'utf8'), expected);
  const ofExport = await json('audit', '--events', out);
  assert.deepEqual([ofExport.code, ofExport.findings], [1, audit.findings]);

  const again = await run('export', '--out', out);
  assert.equal(again.code, 1);
  assert.match(
    again.stdout,
    /^Exported 149 events .*\n✗ 1 event cannot be read as written.*:\nkind .*\nevent_damaged /,
  );
  assert.equal(readFileSync(out, 'utf8'), expected);
  flipByte(file, offsetOf(file, changedId(lost.id)));
  const repaired = await run('export', '--out', out);
  assert.equal(repaired.code, 0, repaired.stdout);
  assert.equal(readFileSync(out, 'utf8').split('\n')[62], eventLine(lost));
});

/** As `flipByte` has changed it. */
const changedId = (id: string) => String.fromCharCode(id.charCodeAt(0) ^ 1) + id.slice(1);

test('a changed name in the index: only --integrity finds it; the export is whole', async () => {
  const { stream } = eventAt(100);
  const { run, json } = damagedLog('index', (path) => hideInIndex(path, stream));
  const integrity = await json('audit', '--integrity');
  assert.equal(integrity.code, 1);
  assert.ok(kindsAt(integrity.findings, 'event_unindexed').some((place) => place.startsWith(stream)));
  assert.deepEqual(kindsAt(integrity.findings, 'event_damaged'), []);
  const out = join(folder, 'index.ndjson');
  assert.equal((await run('export', '--out', out)).code, 0);
  const reference = written.map(eventLine).join('\n');
  assert.ok(readFileSync(out, 'utf8').includes(reference));
});

test('an export whose last event is damaged in the log since is not continued, and stays as it is', async () => {
  const { file, run } = damagedLog('last', () => undefined);
  const out = join(folder, 'last.ndjson');
  assert.equal((await run('export', '--out', out)).code, 0);
  const good = readFileSync(out);
  flipByte(file, offsetOf(file, eventAt(149).id));
  const { code, stderr } = await run('export', '--out', out);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /the event log is damaged at revision \d of stream .*, position 150: .*; put back a backup/,
  );
  assert.deepEqual(readFileSync(out), good);
});
