// `bun run soak [--minutes 30] [--tier embedded|eventstoredb+postgres]`: mixed load with a fault every minute. A run of all
// tiers of 30 minutes or more also writes soak.json and soak.svg. Exit status 1 if anything was lost, doubled, unrecorded
// or wrong, or grew by more than 5 % and by more than five.
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { anvilPath } from '#src/demo/payments/anvil-process.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { soakPlot } from './plot.ts';
import { SOAK_TIERS, type SoakTier, soakTier, type Thirds, type TierResult } from './tier.ts';

const COMMITTED_MINUTES = 30;
/** What must not grow. p99 is printed only: it depends on the faults of the minutes. */
const BOUNDED = ['rss', 'objects', 'abortListeners', 'descriptors'] as const;
const GROWTH = 1.05;
/** Of what is counted by tens, so many more are no growth: they belong to what is in flight. */
const FEW = 5;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: String(COMMITTED_MINUTES) }, tier: { type: 'string' } },
  });
  const minutes = Number(values.minutes);
  const tiers = SOAK_TIERS.filter((tier) => values.tier === undefined || tier === values.tier);
  if (!Number.isInteger(minutes) || minutes < 1 || tiers.length === 0) {
    process.stderr.write(`--minutes: a whole number; --tier: one of ${SOAK_TIERS.join(', ')}\n`);
    return 2;
  }
  if (anvilPath() === null) {
    process.stderr.write(
      'the soak needs anvil, which comes with the packages where there is a build for the platform\n',
    );
    return 2;
  }
  const say = (tier: SoakTier) => (one: TierResult['minutes'][number]) => {
    const memory =
      one.memory === null
        ? ''
        : `, ${Math.round(one.memory.rss / 2 ** 20)} MB, ${one.memory.descriptors} descriptors`;
    process.stdout.write(
      `${tier} ${one.minute}/${minutes}: ${one.fault}; ${one.calls} calls, p99 ${Math.round(one.p99 ?? 0)} ms${memory}\n`,
    );
  };
  const at = new Date().toISOString();
  const results = await Promise.all(tiers.map((tier) => soakTier(tier, minutes, say(tier))));
  const machine = `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`;
  if (tiers.length === SOAK_TIERS.length && minutes >= COMMITTED_MINUTES) {
    const text = JSON.stringify({ at, minutes, machine, bun: process.versions.bun, tiers: results }, null, 1);
    writeFileSync(join(rootPath, 'soak.json'), `${text}\n`);
    writeFileSync(join(rootPath, 'soak.svg'), soakPlot(results));
  }
  const problems = results.flatMap(problemsOf);
  for (const result of results) process.stdout.write(`${summaryOf(result)}\n`);
  for (const problem of problems) process.stdout.write(`PROBLEM ${problem}\n`);
  return problems.length === 0 ? 0 : 1;
}

const summaryOf = ({ tier, counts, lost, doubled, unrecorded, wrong, refunded, thirds }: TierResult) =>
  `${tier}: ${counts.calls} calls, ${counts.reads} reads, ${counts.bad} bad requests, ${counts.mcp} MCP messages, ${refunded} refunds; lost ${lost}, doubled ${doubled}, unrecorded ${unrecorded}, wrong ${wrong.length}; last third against first: ${Object.entries(
    thirds,
  )
    .map(([name, { ratio }]) => `${name} x ${ratio.toFixed(2)}`)
    .join(', ')}`;

function problemsOf({ tier, lost, doubled, unrecorded, wrong, thirds, counts }: TierResult): string[] {
  const counted = Object.entries({ lost, doubled, unrecorded }).filter(([, number]) => number > 0);
  return [
    ...(counts.calls === 0 ? [`${tier}: no call was answered`] : []),
    ...counted.map(([name, number]) => `${tier}: ${number} ${name}`),
    ...wrong.map((words) => `${tier}: ${words}`),
    ...BOUNDED.filter((name) => hasGrown(thirds[name])).map(
      (name) =>
        `${tier}: ${name} grew from ${Math.round(thirds[name].first)} to ${Math.round(thirds[name].last)}`,
    ),
  ];
}

const hasGrown = ({ first, last }: Thirds) => last > first * GROWTH && last > first + FEW;

process.exitCode = await main();
