// `bun run bench [P3 …] [--quick]`: one table and bench.json. Absolute figures say something of the machine; the ratio
// says something of us. A peer that is no package of this project has no column.
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { rebuildMeasure } from './rebuild.ts';
import { type Compared, type Measure, spread } from './rounds.ts';

const MEASURES: readonly Measure[] = [rebuildMeasure];
const FILE = join(import.meta.dirname, '..', '..', 'bench.json');

async function main(args: readonly string[]): Promise<number> {
  const quick = args.includes('--quick');
  const wanted = args.filter((arg) => arg !== '--quick');
  const unknown = wanted.filter((arg) => !MEASURES.some(({ name }) => name === arg));
  if (unknown.length > 0) {
    const known = MEASURES.map(({ name }) => name).join(', ');
    process.stderr.write(`there is no measure ${unknown.join(', ')}; there are ${known} and --quick\n`);
    return 2;
  }
  const begun = { at: new Date().toISOString(), quick, processors: availableParallelism(), load: loadavg() };
  const results: (Compared & ReturnType<typeof summed>)[] = [];
  for (const measure of MEASURES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const compared = await measure.run({ quick }, (line) =>
      process.stderr.write(`${measure.name}: ${line}\n`),
    );
    results.push({ ...compared, ...summed(compared) });
  }
  writeFileSync(FILE, `${JSON.stringify({ ...begun, loadAfter: loadavg(), results }, null, 2)}\n`);
  process.stdout.write(`${tableOf(results)}\nEmmett is not installed here: no figure of it.\n`);
  return 0;
}

const summed = ({ rounds }: Compared) => ({
  ours: spread(rounds.map(({ ours }) => ours)),
  peersRate: spread(rounds.map(({ peer }) => peer)),
  ratio: spread(rounds.map(({ ratio }) => ratio)),
});

function tableOf(results: readonly (Compared & ReturnType<typeof summed>)[]): string {
  const head = ['', 'measure', 'ours', 'peer', 'ratio', 'least to most', 'goal'];
  const lines = results.map(({ name, title, unit, peer, ours, peersRate, ratio, goal }) => [
    name,
    title,
    `${Math.round(ours.median)} ${unit}`,
    `${Math.round(peersRate.median)} ${unit} (${peer})`,
    ratio.median.toFixed(2),
    `${ratio.least.toFixed(2)} to ${ratio.most.toFixed(2)}`,
    `≥ ${goal}`,
  ]);
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((cells) => cells[column]?.length ?? 0)),
  );
  return [head, ...lines]
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

process.exitCode = await main(process.argv.slice(2));
