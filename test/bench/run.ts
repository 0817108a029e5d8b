// `bun run bench [P1 …]`: one table; of a full run of all measures also bench.json, bench.svg and README's table.
// Absolute figures describe the machine; ratios of one run describe the code. `--quick`: fewer calls and rounds.
// `--smoke`: each measure once, very small, for the tests. `--readme`: writes README's table from bench.json and measures nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { rootPath } from '#test/support/process/runtime.ts';
import { MEASURES } from './measures.ts';
import { plotOf } from './plot.ts';
import { removeRecords } from './records.ts';
import {
  README_FILE,
  RESULTS_FILE,
  type Results,
  readResults,
  resultsText,
  tableOf,
  withReadmeSection,
} from './results.ts';
import { type Measure, type Point, ROUNDS, type Row, SIZES, type Size, timed } from './rounds.ts';

const OPTIONS = ['--quick', '--smoke', '--readme'];

async function main(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith('--'));
  const names = args.filter((arg) => !arg.startsWith('--'));
  const unknown = [
    ...flags.filter((flag) => !OPTIONS.includes(flag)),
    ...names.filter((name) => !MEASURES.some((measure) => measure.name === name)),
  ];
  if (unknown.length > 0) {
    const known = MEASURES.map(({ name }) => name).join(', ');
    process.stderr.write(
      `unknown: ${unknown.join(', ')}; measures: ${known}; options: ${OPTIONS.join(', ')}\n`,
    );
    return 2;
  }
  if (flags.includes('--readme')) {
    writeReadme(readResults());
    return 0;
  }
  const size = SIZES.find((one) => flags.includes(`--${one}`)) ?? 'full';
  const selected = MEASURES.filter(({ name }) => names.length === 0 || names.includes(name));
  const results = await measured(selected, size);
  if (size === 'full' && names.length === 0) {
    writeFileSync(RESULTS_FILE, resultsText(results));
    writeFileSync(join(rootPath, 'bench.svg'), plotOf(results.points));
    writeReadme(results);
  }
  process.stdout.write(`${tableOf(results)}\n`);
  return 0;
}

async function measured(measures: readonly Measure[], size: Size): Promise<Results> {
  const at = new Date().toISOString();
  const loadBefore = loadavg();
  const rows: Row[] = [];
  const notes: Record<string, readonly string[]> = {};
  const points: Record<string, readonly Point[]> = {};
  const seconds: Record<string, number> = {};
  try {
    for (const { name, run } of measures) {
      const say = (line: string) => process.stderr.write(`${name}: ${line}\n`);
      const count = (full: number, quick: number, smoke: number) => ({ full, quick, smoke })[size];
      const ms = await timed(async () => {
        const outcome = await run({ count, rounds: ROUNDS[size], say });
        rows.push(...outcome.rows);
        notes[name] = outcome.notes;
        if (outcome.points !== undefined) points[name] = outcome.points;
      });
      seconds[name] = ms / 1000;
      say(`took ${(ms / 1000).toFixed(1)} s`);
    }
  } finally {
    await removeRecords();
  }
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const machine = `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, ${memory}, ${type()} ${release()}`;
  const load = [loadBefore, loadavg()];
  return { at, size, machine, bun: process.versions.bun ?? '', load, seconds, rows, notes, points };
}

const writeReadme = (results: Results) =>
  writeFileSync(README_FILE, withReadmeSection(readFileSync(README_FILE, 'utf8'), results));

process.exitCode = await main(process.argv.slice(2));
