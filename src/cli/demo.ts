// relay demo: the complete product on this machine. It starts the service and a target, executes one webhook, verifies
// its receipt, and leaves nothing behind.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { StoryFailed } from '#src/demo/facts.ts';
import type { PaidWorld } from '#src/demo/paid.ts';
import { runStory, type StoryDeps } from '#src/demo/story.ts';
import { type DemoTarget, startDemoTarget } from '#src/demo/target.ts';
import { type Config, readConfig } from '../config.ts';
import { linkLines, storyLines } from './demo-print.ts';
import { CannotRun, exiting, FoundWrong, oneLine } from './exit.ts';
import { stopSignal } from './serve.ts';
import { heading, print, printJson } from './terminal.ts';

type Options = {
  readonly once?: true;
  readonly paid?: true;
  readonly port?: number;
  readonly dataDir?: string;
  readonly json?: true;
};

const HOST = '127.0.0.1';
const DEFAULT_PORT = 3402;

const HELP = `
Needs no network and no configuration: the environment is ignored. Payment is off (demo mode), and the only address
outside the public internet that may be called is ${HOST}, where the target of the demo listens.
With --paid, payment is on: a chain and an x402 facilitator run on this machine too, and a buyer with worthless coins
pays for the call.`;

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('Start the service and a target on this machine, execute one webhook, verify its receipt.')
    .option('--once', 'exit after the first execution')
    .option('--paid', 'with payment: a local chain, a facilitator, and a buyer that pays')
    .option('--port <n>', `where the service listens (default: ${DEFAULT_PORT}, or any free port)`, readPort)
    .option('--data-dir <dir>', 'keep the data there (default: a temporary folder, removed at the end)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(exiting(demo));
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw new InvalidArgumentError('It must be a number from 0 to 65535.');
  return port;
}

/** `undo` collects the function that reverts each step, so that a signal at any time leaves nothing behind. */
async function demo(options: Options): Promise<boolean> {
  const { signal, release } = stopSignal();
  const undo: (() => Promise<void>)[] = [];
  if (!options.json) print('Starting a relay and a webhook target on this machine …', '');
  try {
    const dataDir = options.dataDir === undefined ? await temporaryFolder(undo) : resolve(options.dataDir);
    const target = await startTarget(undo);
    if (signal.aborted) return true;
    const paid = options.paid ? await (await import('#src/demo/paid.ts')).startPaidWorld(undo) : null;
    if (signal.aborted) return true;
    const service = await startAtDefaultPort(demoConfig(options, dataDir, target, paid), options, undo);
    if (signal.aborted) return true;
    return await run({ options, dataDir, target, paid, baseUrl: service.baseUrl, signal });
  } catch (error) {
    throw error instanceof StoryFailed ? new FoundWrong(error.message, { cause: error }) : error;
  } finally {
    for (const step of undo.reverse()) await step();
    release();
  }
}

async function temporaryFolder(undo: (() => Promise<void>)[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-demo-'));
  undo.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function startTarget(undo: (() => Promise<void>)[]): Promise<DemoTarget> {
  const target = await startDemoTarget(HOST);
  undo.push(() => target.close());
  return target;
}

/** Ignores the environment: the configuration of a real service must not affect the demo. */
function demoConfig(
  { port, json }: Options,
  dataDir: string,
  target: DemoTarget,
  paid: PaidWorld | null,
): Config {
  const config = readConfig({
    HOST,
    PORT: String(port ?? DEFAULT_PORT),
    DATA_DIR: dataDir,
    EGRESS_ALLOW_CIDRS: `${HOST}/32`,
    // Log lines go to standard output, which contains only JSON with --json.
    LOG_LEVEL: json ? 'silent' : 'error',
    ...paid?.environment,
  });
  return { ...config, egress: { ...config.egress, caPem: target.caPem } };
}

/** Without --port, any free port is used if the default one is in use. */
async function startAtDefaultPort(config: Config, { port }: Options, undo: (() => Promise<void>)[]) {
  const { startService, CannotListen } = await import('#src/app/service.ts');
  const at = async (listenPort: number) => {
    const service = await startService({ ...config, listen: { ...config.listen, port: listenPort } });
    undo.push(() => service.stop());
    await service.opened;
    return service;
  };
  try {
    return await at(config.listen.port).catch((cause: unknown) => {
      if (port === undefined && cause instanceof CannotListen) return at(0);
      throw cause;
    });
  } catch (cause) {
    throw new CannotRun(`the service does not start: ${oneLine(cause)}`, { cause });
  }
}

type DemoRun = {
  readonly options: Options;
  readonly dataDir: string;
  readonly target: DemoTarget;
  readonly paid: PaidWorld | null;
  readonly baseUrl: string;
  readonly signal: AbortSignal;
};

async function run({ options, dataDir, target, paid, baseUrl, signal }: DemoRun): Promise<boolean> {
  const deps = { baseUrl, target, folder: dataDir, primitives: verifierPrimitives };
  const story = paid === null ? await runStory(deps) : await paidStory(deps, paid);
  if (options.json) printJson(story);
  else print(...storyLines(story));
  if (options.once) return story.ok;
  if (!options.json)
    print(
      '',
      ...linkLines(story, { dataDir, buyerKey: paid?.buyerKey ?? null }),
      '',
      heading(`The service runs at ${baseUrl}. Ctrl-C stops it.`),
    );
  if (!signal.aborted) await once(signal, 'abort');
  return story.ok;
}

/** Loaded on use: wallets and protocols are large for a demo that pays nothing. */
async function paidStory(deps: StoryDeps, paid: PaidWorld) {
  const { runPaidStory } = await import('#src/demo/paid.ts');
  const { systemClock } = await import('#src/app/buyer.ts');
  return runPaidStory({ ...deps, paid, clock: systemClock() });
}
