// Runs seeds one after another and prints a line of JSON for each. Arguments: first seed, how many, step, defect or `-`,
// `trace` or `-`. Started by `seeds.ts`, under Bun.
import process from 'node:process';
import { alterModule } from './alter-module.ts';
import { DEFECTS } from './defects.ts';

const [first = '1', count = '1', step = '1', defect = '-', trace = '-'] = process.argv.slice(2);
if (defect !== '-') {
  const found = DEFECTS.find(({ name }) => name === defect);
  if (found === undefined) throw new Error(`there is no defect ${defect}`);
  // Before the module is loaded.
  for (const change of found.changes) alterModule(change);
}
const { runSeed } = await import('./run-seed.ts');

const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => {
  unhandled.push(reason instanceof Error ? (reason.stack ?? reason.message) : String(reason));
});
for (let n = 0; n < Number(count); n++) {
  const result = await runSeed(Number(first) + n * Number(step), { trace: trace === 'trace' });
  const rejections = unhandled
    .splice(0)
    .map((detail) => ({ invariant: 'no_defect', detail: `unhandled: ${detail}` }));
  process.stdout.write(
    `${JSON.stringify({ ...result, violations: [...result.violations, ...rejections] })}\n`,
  );
}
