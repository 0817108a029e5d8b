// `bun run test [bun|deno] [part of a path …]`: every test file under Bun, then every one under Deno, each in a process
// of its own, two at a time and two more of those that mostly wait, the journeys last. The last line is the sum of both.
// A file that ran no test, a run that ended badly, a test skipped without a stated requirement and a test that only one
// of the two saw count as failed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CaseResult, readJunit, titleKey } from './junit.ts';
import { makePristine, PRISTINE } from './support/pristine.ts';
import type { SkipNote } from './support/requirements.ts';

const RUNTIMES = ['bun', 'deno'] as const;
type RuntimeName = (typeof RUNTIMES)[number];

type FileResult = {
  readonly runtime: RuntimeName;
  readonly file: string;
  readonly cases: readonly CaseResult[];
  readonly notes: readonly SkipNote[];
  /** What is wrong beside failed tests. */
  readonly faults: readonly string[];
};

const FILE_LIMIT_MS = 5 * 60_000;
/** Bun's own default of 5 s is short for a test that starts processes. */
const TEST_LIMIT_MS = 120_000;

const root = join(import.meta.dirname, '..');
const scratch = mkdtempSync(join(tmpdir(), 'relay-tests-'));
const pristine = join(scratch, 'pristine');

async function main(args: readonly string[]): Promise<number> {
  const runtimes = RUNTIMES.filter((name) => args[0] === name || (args[0] !== 'bun' && args[0] !== 'deno'));
  const files = testFiles(runtimes.length === 1 ? args.slice(1) : args);
  const results: FileResult[] = [];
  await makePristine(pristine);
  for (const runtime of runtimes) {
    const command = runtime === 'bun' ? process.execPath : denoBinary();
    results.push(...(await inLanes(files, (file) => runFile(runtime, command, file))));
  }
  return summary(runtimes, results, runtimes.length === 2 ? differences(results) : []);
}

/** They wait for leases, time limits and outages nearly all of their time. */
const MOSTLY_WAITING =
  /^test\/journeys\/(cluster|faults|paid-processes|refused-starts-event-store|shared-postgres|stop)/;

/** Results in the files' order. */
async function inLanes<T>(files: readonly string[], work: (file: string) => Promise<T>): Promise<T[]> {
  const results = new Map<string, T>();
  const patient = files.filter((file) => MOSTLY_WAITING.test(file)).values();
  const others = files.filter((file) => !MOSTLY_WAITING.test(file)).values();
  const lane = async (...queues: readonly IterableIterator<string>[]) => {
    for (const queue of queues) for (const file of queue) results.set(file, await work(file));
  };
  await Promise.all([lane(others, patient), lane(others, patient), lane(patient), lane(patient)]);
  return files.flatMap((file) => {
    const result = results.get(file);
    return result === undefined ? [] : [result];
  });
}

/** Journeys start the real service, so they come last. */
function testFiles(parts: readonly string[]): string[] {
  const files = globSync('test/**/*.test.ts', { cwd: root }).filter(
    (file) => parts.length === 0 || parts.some((part) => file.includes(part)),
  );
  const isJourney = (file: string) => Number(file.startsWith('test/journeys/'));
  return files.sort((a, b) => isJourney(a) - isJourney(b) || a.localeCompare(b));
}

/** The binary itself: npm's wrapper in front of it passes no signals on. */
function denoBinary(): string {
  const wrapper = join(root, 'node_modules', '.bin', 'deno');
  const asked = spawnSync(wrapper, ['eval', 'console.log(Deno.execPath())'], { cwd: root, encoding: 'utf8' });
  const path = asked.stdout?.trim() ?? '';
  if (asked.status !== 0 || path === '')
    throw new Error(`deno does not start: ${asked.error ?? asked.stderr}`);
  return path;
}

let runs = 0;

async function runFile(runtime: RuntimeName, command: string, file: string): Promise<FileResult> {
  const id = join(scratch, String(runs++));
  const [report, skips] = [`${id}.xml`, `${id}.skips`];
  const started = performance.now();
  const { ended, output } = await run(command, testArguments(runtime, report, file), skips);
  const cases = existsSync(report) ? readJunit(readFileSync(report, 'utf8')) : [];
  const notes: SkipNote[] = linesOf(skips).map((line) => JSON.parse(line));
  const result = { runtime, file, cases, notes, faults: faultsOf(cases, notes, ended) };
  const good = count([result], 'failed') === 0;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `${good ? 'ok    ' : 'FAILED'} ${runtime} ${file} (${count([result], 'passed')} passed, ${seconds} s)`,
  );
  if (!good) console.log(output);
  return result;
}

function testArguments(runtime: RuntimeName, report: string, file: string): string[] {
  return runtime === 'bun'
    ? ['test', `--timeout=${TEST_LIMIT_MS}`, '--reporter=junit', `--reporter-outfile=${report}`, `./${file}`]
    : ['test', '--allow-all', '--no-check', '--no-lock', `--junit-path=${report}`, file];
}

type Run = { readonly ended: string | null; readonly output: string };

/** `ended`: null where the exit code was 0. */
function run(command: string, args: readonly string[], skips: string): Promise<Run> {
  const own = { RELAY_TEST_SKIPS: skips, [PRISTINE]: pristine };
  const env = { ...process.env, ...own, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, FILE_LIMIT_MS);
    const end = (ended: string | null) => {
      clearTimeout(timer);
      resolve({ ended, output });
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.on('error', (error) => end(`the run did not start: ${error.message}`));
    // `exit`, not `close`: a process that a test left behind holds the pipes open
    child.on('exit', (code, signal) =>
      end(
        late
          ? `the run was ended after ${FILE_LIMIT_MS / 60_000} minutes`
          : code === 0
            ? null
            : `the run ended with ${code ?? signal}`,
      ),
    );
  });
}

function faultsOf(cases: readonly CaseResult[], notes: readonly SkipNote[], ended: string | null): string[] {
  const faults = [];
  if (cases.length === 0 && notes.length === 0) faults.push('0 tests ran');
  if (notes.length === 0) {
    const skipped = cases.filter((result) => result.outcome === 'skipped');
    faults.push(...skipped.map(({ title }) => `skipped without a requirement: ${title}`));
  }
  if (ended !== null && !cases.some((result) => result.outcome === 'failed')) faults.push(ended);
  return faults;
}

/**
 * Deno's node:test calls a file good whose top level threw after its first test: what the other runtime ran and it
 * did not would be missed by nobody.
 */
function differences(results: readonly FileResult[]): string[] {
  const sound = results.filter((result) => result.notes.length === 0 && count([result], 'failed') === 0);
  return sound.flatMap((mine) => {
    const other = sound.find((result) => result.file === mine.file && result.runtime !== mine.runtime);
    const seen = new Set((other ?? mine).cases.map(({ title }) => titleKey(title)));
    const alone = mine.cases.filter(({ title }) => !seen.has(titleKey(title)));
    return alone.map(({ title }) => `${mine.file}: only ${mine.runtime} ran: ${title}`);
  });
}

/** A file that tells a missing requirement and no test at all is one skipped suite. */
function count(results: readonly FileResult[], outcome: CaseResult['outcome']): number {
  const ones: number[] = results.map(({ cases, notes, faults }) => {
    const told = cases.filter((result) => result.outcome === outcome).length;
    if (outcome === 'failed') return told + faults.length;
    return outcome === 'skipped' && cases.length === 0 && notes.length > 0 ? 1 : told;
  });
  return ones.reduce((sum, one) => sum + one, 0);
}

function summary(
  runtimes: readonly RuntimeName[],
  results: readonly FileResult[],
  different: readonly string[],
): number {
  const lines = [''];
  for (const { runtime, file, cases, faults } of results) {
    const failed = cases.filter((result) => result.outcome === 'failed').map(({ title }) => title);
    lines.push(...[...failed, ...faults].map((what) => `failed  ${runtime} ${file}: ${what}`));
  }
  lines.push(...different.map((what) => `failed  ${what}`));
  for (const runtime of runtimes) {
    const mine = results.filter((result) => result.runtime === runtime);
    lines.push(`${runtime}: ${mine.length} files, ${sums(mine, 0)}`);
  }
  const missing = results.flatMap(({ file, notes }) =>
    notes.map(({ name, reason }) => `skipped  ${file}: ${name} is missing: ${reason}`),
  );
  lines.push(...new Set(missing), sums(results, different.length));
  console.log(lines.join('\n'));
  const failed = count(results, 'failed') + different.length;
  return failed > 0 || count(results, 'passed') === 0 ? 1 : 0;
}

const sums = (results: readonly FileResult[], more: number): string => {
  const skipped = count(results, 'skipped');
  const failed = count(results, 'failed') + more;
  return `${count(results, 'passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
};

const linesOf = (path: string): string[] =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

try {
  process.exitCode = await main(process.argv.slice(2));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
