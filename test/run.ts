// The test runner. Its last line is the sum of all runs: `N passed, N failed[, N skipped]`.
//
//   bun test/run.ts [part …]           the fast set under Bun: what `bun run test` runs
//   bun test/run.ts --more             what the fast set leaves out, but for `--full` and `bun run check`: longer journeys
//   bun test/run.ts --deno [part …]    what depends on the runtime, under Deno
//   bun test/run.ts --full [part …]    every file under Bun, then every file under Deno, with long property runs; then the
//                                      paid journeys in the other cells
//   bun test/run.ts --cells[=CELL] [part …]   the paid journeys 20 times a row in each cell: one process or two, over the
//                                      embedded log or EventStoreDB; with a table of the rows
//
//   bun test/run.ts --update           writes test/fixtures/model-versions.json again, from the projections, after a change of one
//
// A part selects the files whose path contains it. Files that start no service share a process; every other file has one
// of its own. Also counted as failed: a file that ran no test, a run that ended badly, and a test that was
// skipped without a stated requirement.
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, globSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SkipNote } from '#test/support/chain/requirements.ts';
import { SHARED_POSTGRES, sharedPostgres } from '#test/support/log/postgres.ts';
import { CELLS, type Cell, cellOf, PAID_CELL, PAID_ROWS } from '#test/support/process/cells.ts';
import { type CaseResult, readJunit } from './junit.ts';

type Runtime = 'bun' | 'deno';

/** Files that run in one process, one after another. */
type Batch = readonly string[];

type BatchResult = {
  readonly runtime: Runtime;
  readonly batch: Batch;
  readonly cases: readonly CaseResult[];
  readonly cell: Cell;
  /** One for each payment of the table. */
  readonly rows: readonly string[];
  readonly notes: readonly SkipNote[];
  /** What is wrong besides failed tests. */
  readonly faults: readonly string[];
  /** Of the run and of all processes that it started and that have ended. */
  readonly cpuSeconds: number;
};

/**
 * Files that share nothing but the module cache and the processes of `runCli`: to load it, and to start these, costs a file
 * more than its tests.
 */
const IN_PROCESS =
  /^test\/(adapters\/(audit|buyer|calendar|event-log\/(checkpoint|log-memory|eventstoredb\/(discover|event-log|states|url)|sqlite\/(event-log|file|group|size|subscribe))|logging|outbound|payments|quota\/memory|runtime|signing|telemetry|vault|witness)|app|architecture|assets|bench\/results|buyer|cli\/(?!(audit|backup|doctor|export|launcher|pay|rebuild)\.)|client|config|demo\/(certificates|story)|deploy\/(files|monitoring)|discovery|domain|http|junit|lib|projections\/(fold|generations|model|percentiles|progress|read|session|tree)|support|usecases|verify)/;
const BATCH_COUNT = 3;

/**
 * Long outages, load over several processes and all measures of the bench: `--full` only.
 * Their rules have a faster test in the fast set.
 */
const FULL_ONLY =
  /^test\/((bench|soak)\/smoke|deploy\/(binary|image)|journeys\/(cluster-(eventstore|schedules|sqlite)|paid-books|rebuild|upgrade|states-(chain|shared)|faults-postgres-frozen))\.test/;

/**
 * Real processes for minutes: each kind of outage, refused start, damage, proxy and browser page; hundreds of simulated
 * histories, audits of changed ones and random requests. The fast set has one journey for each promise, and the rules of
 * these at a lower level.
 */
const MORE =
  /^test\/(journeys\/(crash|damaged-|discovery-tool|faults-(embedded|log-)|keys|missing-log|newer-release|operators-|pages|paid-(confirmed|facilitator|processes|reconciled|schedules-pay|secrets)|published-verifier|refused-|schedule-secrets|shared-|snippets|start|states-(books|disk|embedded)|stop|verify-pages|web-bot-auth|witness)|demo\/(demo|paid)\.|deploy\/(default-)?proxies|cli\/(audit|backup|doctor|export|launcher|pay|rebuild)\.|adapters\/(event-log\/(eventstoredb\/faults|sqlite\/damage)|outbound\/https-load|quota\/postgres-away|read-store\/(pglite-|postgres-))|projections\/(projector-|purge|rebuild)|bench\/records|simulation\/(defects|simulation)|usecases\/audit\/audit-(mutations|slices)|verify\/(package|python)|http\/(fuzz|openapi\/generated))/;

/** Run by `bun run check`. */
const CHECKED = /^test\/architecture\//;

/** The embedded read store, and that of a server: both are PostgreSQL, and the fast set runs their contract once. */
const EMBEDDED = /^test\/adapters\/read-store\/pglite\.test/;

/** What the table of payments states, and its kills: repeated in each cell. Two processes in any cell: the pairs. */
const PAID_TABLE = /^test\/journeys\/paid-(books|confirmed|facilitator|killed|once|reconciled|refund)\.test/;
const PAID_PAIRS = /^test\/journeys\/paid-processes\.test/;

const DENO_SET =
  /^test\/(adapters\/|http\/request\/strict-json|journeys\/(one-webhook|crash|paid-once|stop)\.test)/;

/** Started first, in this order, as the run ends when the longest file does: files that wait for leases, then work. */
const LONGEST = [
  /(journeys\/(paid-(books|processes)|shared-postgres)|read-store\/postgres|simulation\/simulation)\.test/,
  /journeys\/(paid-|cluster-|faults-|crash|audit|keys)/,
  /read-store\/pglite|cli\/(pay|rebuild|export|audit|keys)|demo\/|journeys\/|bench\/smoke/,
];

/** Files in parallel: two cores, and most journeys wait for leases, time limits and outages. */
const LANES = 6;
/** They end a hang: a machine three times as slow as the slowest known does not reach them. */
const FILE_LIMIT_MS = 10 * 60_000;
const TEST_LIMIT_MS = 240_000;

const root = join(import.meta.dirname, '..');
const scratch = mkdtempSync(join(tmpdir(), 'relay-tests-'));
const shared: Record<string, string> = {};

async function main(args: readonly string[]): Promise<number> {
  const [set = '--fast', cell] = args.find((arg) => arg.startsWith('--'))?.split('=') ?? [];
  if (set === '--update') shared.RELAY_TEST_UPDATE = '1';
  const parts =
    set === '--update' ? ['projections/model-versions'] : args.filter((arg) => !arg.startsWith('--'));
  const all = globSync('test/**/*.test.ts', { cwd: root }).sort();
  const selected = all.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
  const usual = selected.filter((file) => parts.length > 0 || !FULL_ONLY.test(file));
  const deno = selected.filter((file) => parts.length > 0 || DENO_SET.test(file));
  const postgres = await sharedPostgres();
  if (postgres !== null) shared[SHARED_POSTGRES] = postgres.url;
  const isMore = (file: string) => MORE.test(file) || (postgres !== null && EMBEDDED.test(file));
  const fast = usual.filter((file) => parts.length > 0 || !(isMore(file) || CHECKED.test(file)));
  const more = usual.filter(isMore);
  if (set === '--full' || set === '--cells') shared.RELAY_TEST_LONG = '1';
  const results: BatchResult[] = [];
  try {
    if (set === '--fast' || set === '--update') results.push(...(await runAll('bun', fast)));
    if (set === '--more') results.push(...(await runAll('bun', more)));
    if (set === '--full') results.push(...(await runAll('bun', selected)));
    if (set === '--full') results.push(...(await runAll('deno', selected)));
    if (set === '--deno') results.push(...(await runAll('deno', deno)));
    const cells = CELLS.filter((name) =>
      set === '--cells' ? cell === undefined || cell === name : name !== CELLS[0],
    );
    if (set === '--cells' || set === '--full')
      for (const name of cells) results.push(...(await runCell(name, selected)));
    if (set === '--cells') printRows(results);
  } finally {
    await postgres?.remove();
  }
  return summary(results);
}

/** Runs the files in lanes; results in the files' order. */
async function runAll(runtime: Runtime, files: readonly string[]): Promise<BatchResult[]> {
  const command = runtime === 'bun' ? process.execPath : denoBinary();
  // Deno's report names the file that declares a test, which for a contract suite is not the test file.
  const batches = runtime === 'deno' ? files.map((file) => [file]) : batchesOf(files);
  const results: BatchResult[] = [];
  const queue = batches.values();
  const lane = async () => {
    for (const batch of queue) results.push(await runBatch(runtime, command, batch));
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return results;
}

async function runCell(cell: Cell, files: readonly string[]): Promise<BatchResult[]> {
  if (cell !== CELLS[0] && shared[SHARED_POSTGRES] === undefined)
    throw new Error(`the cell ${cell} needs a PostgreSQL of this machine`);
  shared[PAID_CELL] = cell;
  console.log(`cell ${cell}`);
  try {
    return await runAll(
      'bun',
      files.filter((file) => PAID_TABLE.test(file) || (cell.startsWith('2') && PAID_PAIRS.test(file))),
    );
  } finally {
    delete shared[PAID_CELL];
  }
}

/** Payments of each row whose books were as they must be, by cell. */
function printRows(results: readonly BatchResult[]): void {
  const rows = new Map<string, number[]>();
  for (const { batch, rows: found, cell } of results)
    for (const row of found) {
      const name = `${nameOf(batch).replace(/^.*paid-|\.test\.ts$/g, '')}: ${row}`;
      const counts = rows.get(name) ?? CELLS.map(() => 0);
      counts[CELLS.indexOf(cell)] = (counts[CELLS.indexOf(cell)] ?? 0) + 1;
      rows.set(name, counts);
    }
  const lines = [...rows].map(([name, counts]) => [name.padEnd(60), ...counts].join('\t'));
  console.log(['', ['payments of each row'.padEnd(60), ...CELLS].join('\t'), ...lines.sort()].join('\n'));
}

function batchesOf(files: readonly string[]): Batch[] {
  const together = files.filter((file) => IN_PROCESS.test(file));
  const alone = files.filter((file) => !IN_PROCESS.test(file));
  const batches = Array.from({ length: BATCH_COUNT }, (_, i) =>
    together.filter((_, n) => n % BATCH_COUNT === i),
  );
  const rankOf = ([file = '', ...rest]: Batch) => {
    const found = LONGEST.findIndex((pattern) => pattern.test(file));
    return rest.length > 0 ? 1 : found < 0 ? LONGEST.length : found;
  };
  return [...batches.filter((batch) => batch.length > 0), ...alone.map((file) => [file])].sort(
    (a, b) => rankOf(a) - rankOf(b),
  );
}

/** The binary itself: npm's wrapper in front of it forwards no signals. */
function denoBinary(): string {
  const wrapper = join(root, 'node_modules', '.bin', 'deno');
  const asked = spawnSync(wrapper, ['eval', 'console.log(Deno.execPath())'], { cwd: root, encoding: 'utf8' });
  const path = asked.stdout?.trim() ?? '';
  if (asked.status !== 0 || path === '')
    throw new Error(`deno does not start: ${asked.error ?? asked.stderr}`);
  return path;
}

let runs = 0;

async function runBatch(runtime: Runtime, command: string, batch: Batch): Promise<BatchResult> {
  const id = join(scratch, String(runs++));
  const report = `${id}.xml`;
  const started = performance.now();
  // Long property runs, and many files in one process, take longer.
  const long = batch.length > 1 || shared.RELAY_TEST_LONG !== undefined;
  const limitMs = FILE_LIMIT_MS * (long ? 2 : 1);
  const { ended, output, cpuSeconds } = await run(
    command,
    testArguments(runtime, report, batch),
    id,
    limitMs,
  );
  const found = existsSync(report) ? readJunit(readFileSync(report, 'utf8')) : [];
  const [only] = batch;
  const cases =
    only !== undefined && batch.length === 1 ? found.map((one) => ({ ...one, file: only })) : found;
  const notes: SkipNote[] = linesOf(`${id}.skips`).map((line) => JSON.parse(line));
  const faults = faultsOf(batch, cases, notes, ended);
  const cell = cellOf(shared);
  const result = { runtime, batch, cases, cell, rows: linesOf(`${id}.rows`), notes, cpuSeconds, faults };
  const good = count([result], 'failed') === 0;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `${good ? 'ok    ' : 'FAILED'} ${runtime} ${nameOf(batch)} (${count([result], 'passed')} passed, ${seconds} s, CPU ${cpuSeconds.toFixed(1)} s)`,
  );
  if (!good) console.log(output);
  return result;
}

function nameOf([first = '', ...rest]: Batch): string {
  return rest.length === 0 ? first : `${first} and ${rest.length} more`;
}

function testArguments(runtime: Runtime, report: string, batch: Batch): string[] {
  const files = batch.map((file) => `./${file}`);
  // Loaded before the files, it ends the processes of `runCli` after all of them.
  if (batch.length > 1) files.unshift('--preload=./test/support/process/cli.ts');
  return runtime === 'bun'
    ? ['test', `--timeout=${TEST_LIMIT_MS}`, '--reporter=junit', `--reporter-outfile=${report}`, ...files]
    : ['test', '--allow-all', '--no-check', '--no-lock', `--junit-path=${report}`, ...files];
}

type Run = {
  /** null if the exit code was 0, else how the run ended. */
  readonly ended: string | null;
  readonly output: string;
  readonly cpuSeconds: number;
};

async function run(command: string, args: readonly string[], id: string, limitMs: number): Promise<Run> {
  const env = {
    ...process.env,
    ...shared,
    RELAY_TEST_SKIPS: `${id}.skips`,
    [PAID_ROWS]: `${id}.rows`,
    NO_COLOR: '1',
    DENO_NO_UPDATE_CHECK: '1',
  };
  // A file, not a pipe: a process that a test left behind would hold a pipe open.
  const output = openSync(`${id}.output`, 'a');
  const child = Bun.spawn([command, ...args], {
    cwd: root,
    env,
    stdin: 'ignore',
    stdout: output,
    stderr: output,
  });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, limitMs);
  const code = await child.exited;
  clearTimeout(timer);
  closeSync(output);
  const bad = code === 0 ? null : `the run ended with ${child.signalCode ?? code}`;
  return {
    ended: late ? `the run was killed after ${limitMs / 60_000} minutes` : bad,
    output: readFileSync(`${id}.output`, 'utf8'),
    cpuSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
  };
}

function faultsOf(
  batch: Batch,
  cases: readonly CaseResult[],
  notes: readonly SkipNote[],
  ended: string | null,
): string[] {
  const stated = new Set(notes.map(({ file }) => file));
  const faults = batch
    .filter((file) => !stated.has(file) && !cases.some((result) => result.file === file))
    .map((file) => `${file}: 0 tests ran`);
  const skipped = cases.filter(({ outcome, file }) => outcome === 'skipped' && !stated.has(file));
  faults.push(...skipped.map(({ title }) => `skipped without a requirement: ${title}`));
  if (ended !== null && !cases.some((result) => result.outcome === 'failed')) faults.push(ended);
  return faults;
}

/** A file that states a missing requirement and has no test in the report is one skipped suite. */
function count(results: readonly BatchResult[], outcome: CaseResult['outcome']): number {
  const each: number[] = results.map(({ cases, notes, faults }) => {
    const found = cases.filter((result) => result.outcome === outcome).length;
    if (outcome === 'failed') return found + faults.length;
    if (outcome === 'passed') return found;
    const silent = new Set(notes.map(({ file }) => file));
    for (const { file } of cases) silent.delete(file);
    return found + silent.size;
  });
  return each.reduce((sum, one) => sum + one, 0);
}

function summary(results: readonly BatchResult[]): number {
  const lines = [''];
  // At the end: of a long log often only that is kept.
  const failures: string[] = [];
  for (const { runtime, batch, cases, faults, cell } of results) {
    const failed = cases.filter((result) => result.outcome === 'failed');
    const where = cell === CELLS[0] ? runtime : `${runtime} ${cell}`;
    for (const { file, title, failure } of failed)
      failures.push(`failed  ${where} ${file}: ${title}`, ...indented(failure));
    failures.push(...faults.map((fault) => `failed  ${where} ${nameOf(batch)}: ${fault}`));
  }
  for (const runtime of ['bun', 'deno'] as const) {
    const mine = results.filter((result) => result.runtime === runtime);
    const files = mine.flatMap(({ batch }) => batch);
    if (files.length > 0) lines.push(`${runtime}: ${files.length} files, ${sums(mine)}`);
  }
  const missing = results.flatMap(({ notes }) =>
    notes.map(({ file, name, reason }) => `skipped  ${file}: ${name} is missing: ${reason}`),
  );
  lines.push(...new Set(missing), ...costs(results), ...failures, sums(results));
  console.log(lines.join('\n'));
  return count(results, 'failed') > 0 || count(results, 'passed') === 0 ? 1 : 0;
}

/** The beginning of a failed assertion's text. */
const indented = (text: string): string[] =>
  text === ''
    ? []
    : text
        .slice(0, 4000)
        .split('\n')
        .slice(0, 60)
        .map((line) => `        ${line}`);

/** What the run used in all, and the most of it. */
function costs(results: readonly BatchResult[]): string[] {
  const used = results.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  const most = [...results].sort((a, b) => b.cpuSeconds - a.cpuSeconds).slice(0, 10);
  return [
    `CPU ${used.toFixed(0)} s, of which`,
    ...most.map(({ cpuSeconds, batch }) => `${cpuSeconds.toFixed(1).padStart(8)} s  ${nameOf(batch)}`),
  ];
}

function sums(results: readonly BatchResult[]): string {
  const skipped = count(results, 'skipped');
  const failed = count(results, 'failed');
  return `${count(results, 'passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

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
