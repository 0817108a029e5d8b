// `bun run bench [P1 …] [--quick] [--profile]`: one table; of a full run of all measures also bench.json and bench.svg.
// Absolute figures describe the machine; ratios of one run describe the code. `--profile` writes a CPU profile of P1's
// service and prints where the time of a call goes, by room.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { rootPath } from '#test/support/runtime.ts';
import { auditMeasure } from './audit.ts';
import { callsMeasure, eventStoreMeasure, paidMeasure } from './calls.ts';
import { logMeasure } from './event-log.ts';
import { growthMeasure } from './growth.ts';
import { plotOf } from './plot.ts';
import { timeByRoom } from './profile.ts';
import { readsMeasure } from './reads.ts';
import { rebuildMeasure } from './rebuild.ts';
import { receiptsMeasure } from './receipts.ts';
import { removeRecords } from './records.ts';
import type { Measure, Point, Row } from './rounds.ts';
import { startMeasure } from './start.ts';

const MEASURES: readonly Measure[] = [
  callsMeasure,
  eventStoreMeasure,
  logMeasure,
  rebuildMeasure,
  readsMeasure,
  receiptsMeasure,
  startMeasure,
  growthMeasure,
  paidMeasure,
  auditMeasure,
];

async function main(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith('--'));
  const names = args.filter((arg) => !arg.startsWith('--'));
  const unknown = [
    ...flags.filter((flag) => flag !== '--quick' && flag !== '--profile'),
    ...names.filter((name) => !MEASURES.some((measure) => measure.name === name)),
  ];
  if (unknown.length > 0) {
    const known = MEASURES.map(({ name }) => name).join(', ');
    process.stderr.write(`unknown: ${unknown.join(', ')}; measures: ${known}; options: --quick, --profile\n`);
    return 2;
  }
  const quick = flags.includes('--quick');
  const profile = flags.includes('--profile') ? mkdtempSync(join(tmpdir(), 'relay-profile-')) : null;
  const begun = {
    at: new Date().toISOString(),
    quick,
    machine: `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`,
    bun: process.versions.bun,
    loadBefore: loadavg(),
  };
  const rows: Row[] = [];
  const points: Record<string, readonly Point[]> = {};
  try {
    for (const measure of MEASURES.filter(({ name }) => names.length === 0 || names.includes(name))) {
      const say = (line: string) => process.stderr.write(`${measure.name}: ${line}\n`);
      const outcome = await measure.run({ quick, profile, say });
      rows.push(...outcome.rows);
      if (outcome.points !== undefined) points[measure.name] = outcome.points;
    }
  } finally {
    await removeRecords();
  }
  if (!quick && names.length === 0) {
    const results = { ...begun, loadAfter: loadavg(), plot: 'bench.svg', rows, points };
    writeFileSync(join(rootPath, 'bench.json'), `${JSON.stringify(results, null, 2)}\n`);
    writeFileSync(join(rootPath, 'bench.svg'), plotOf(points));
  }
  process.stdout.write(`${tableOf(rows)}\n`);
  if (profile !== null) {
    process.stdout.write(`\n${timeByRoom(profile)}\n`);
    rmSync(profile, { recursive: true, force: true });
  }
  return 0;
}

function tableOf(rows: readonly Row[]): string {
  const head = ['', 'measure', 'ours', 'peer', 'compared', 'least to most', 'goal', ''];
  const lines = rows.map(({ measure, title, unit, ours, peer, peers, compared, goal, reached }) => {
    const sign = goal.at === 'least' ? '≥' : '≤';
    const wanted = goal.value === 0 ? '—' : `${sign} ${figure(goal.value)}`;
    return [
      measure,
      title,
      `${figure(ours.median)} ${unit}`,
      goal.kind === 'absolute' ? '' : `${figure(peers.median)} ${unit} (${peer})`,
      goal.kind === 'ratio' ? `× ${figure(compared.median)}` : `${figure(compared.median)} ${unit}`,
      `${figure(compared.least)} to ${figure(compared.most)}`,
      wanted,
      goal.value === 0 ? '' : reached ? 'reached' : 'missed',
    ];
  });
  const cells = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Three significant digits, or a whole number from 100. */
const figure = (value: number): string =>
  Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));

process.exitCode = await main(process.argv.slice(2));
