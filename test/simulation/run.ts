#!/usr/bin/env bun
// Runs the service in a simulated world, seed after seed.
//
//   bun run simulate [--seeds N] [--from S] [--coverage]   N seeds (1000) from S (1) on; ends at the first that fails
//                    [--keep-going] [--workers N]          or lists all that fail
//   bun run simulate --seed S [--trace]                    one seed, with what happened in plain sentences
//   bun run simulate --defects [--only NAME] [--within N]  puts each defect of defects.ts back, and counts the seeds until it
//                                                          is seen; writes defects.json
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { SingleBar } from 'cli-progress';
import { DEFECTS, type Defect } from './defects.ts';
import { runSeed, type SeedResult } from './run-seed.ts';
import { runSeeds } from './seeds.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    defects: { type: 'boolean', default: false },
    only: { type: 'string' },
    within: { type: 'string' },
    workers: { type: 'string' },
  },
});

const workers = values.workers === undefined ? {} : { workers: numberOf('workers', values.workers) };
process.exitCode = values.defects
  ? await findDefects()
  : values.seed !== undefined
    ? await runOne(numberOf('seed', values.seed))
    : await runMany(numberOf('from', values.from), numberOf('seeds', values.seeds));

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new Error(`--${option} takes a whole number, not ${text}`);
  return number;
}

async function runOne(seed: number): Promise<number> {
  const result = await runSeed(seed, { trace: values.trace });
  for (const line of result.lines) console.log(line);
  console.log(
    `seed ${seed}: ${result.steps} steps, ${result.events} events, trace ${result.digest.slice(0, 16)}`,
  );
  return report(result) ? 0 : 1;
}

/** Whether nothing is wrong. */
function report({ seed, violations }: SeedResult): boolean {
  for (const { invariant, detail } of violations)
    console.log(`seed ${seed} violates ${invariant}: ${detail}`);
  return violations.length === 0;
}

async function runMany(from: number, count: number): Promise<number> {
  const bar = new SingleBar({ format: '{bar} {value}/{total} seeds, {rate} a minute', hideCursor: true });
  const begun = performance.now();
  const reached = new Map<string, number>();
  let done = 0;
  const failed: SeedResult[] = [];
  const keepsGoing = values['keep-going'];
  const rate = () => Math.round((done * 60_000) / (performance.now() - begun));
  bar.start(count, 0, { rate: 0 });
  await runSeeds({
    from,
    count,
    defect: null,
    ...workers,
    onResult(result) {
      done++;
      for (const name of Object.keys(result.counts)) reached.set(name, (reached.get(name) ?? 0) + 1);
      if (result.violations.length > 0) failed.push(result);
      bar.update(done, { rate: rate() });
      return failed.length === 0 || keepsGoing;
    },
  });
  bar.stop();
  if (values.coverage) printCoverage(reached, done);
  console.log(`${done} seeds from ${from} on, ${rate()} a minute, ${failed.length} failed`);
  const [first] = failed;
  if (first === undefined) return 0;
  if (!keepsGoing) return explain(first);
  for (const result of failed) report(result);
  return 1;
}

/** The failing seed's trace, its violations and the command that replays it. */
async function explain({ seed }: SeedResult): Promise<number> {
  const again = await runSeed(seed, { trace: true });
  for (const line of again.lines) console.log(line);
  report(again);
  console.log(`Replay it with: bun run simulate --seed ${seed} --trace`);
  return 1;
}

function printCoverage(reached: ReadonlyMap<string, number>, done: number): void {
  console.log(`\nreached by so many of ${done} seeds:`);
  for (const [name, seeds] of [...reached].sort()) console.log(`${String(seeds).padStart(8)}  ${name}`);
}

// ── defects ─────────────────────────────────────────────────────────────────────────────────────────────

type Found = { readonly defect: string; readonly seenBy: string | null; readonly seeds: number };

async function findDefects(): Promise<number> {
  const chosen = DEFECTS.filter(({ name }) => values.only === undefined || name.includes(values.only));
  const rows: Found[] = [];
  for (const defect of chosen) {
    const found = await search(defect);
    rows.push(found);
    const seen = found.seenBy === null ? 'NOT SEEN' : `seen by ${found.seenBy}`;
    console.log(
      `${defect.name.padEnd(44)} ${seen.padEnd(34)} ${String(found.seeds).padStart(5)} seeds  ${defect.what}`,
    );
  }
  const missed = rows.filter(({ seenBy }) => seenBy === null).length;
  console.log(`${rows.length} defects, ${missed} not seen`);
  if (values.only === undefined && values.within === undefined)
    writeFileSync(join(import.meta.dirname, 'defects.json'), `${JSON.stringify(rows, null, 2)}\n`);
  return missed === 0 ? 0 : 1;
}

/** The lowest seed that sees the defect, among the first `within`. */
async function search({ name, ...defect }: Defect): Promise<Found> {
  const within = values.within === undefined ? defect.within : numberOf('within', values.within);
  let best: SeedResult | null = null;
  await runSeeds({
    from: 1,
    count: within,
    defect: name,
    ...workers,
    onResult(result) {
      if (result.violations.length === 0) return true;
      best = result;
      return false;
    },
  });
  const found = best as SeedResult | null;
  return { defect: name, seenBy: found?.violations[0]?.invariant ?? null, seeds: found?.seed ?? within };
}
