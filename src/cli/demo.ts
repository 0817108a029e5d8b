// relay demo: the whole product on this machine, for someone who sees it the first time. It starts the service and a
// target, tells the story of one webhook, and leaves nothing behind.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { type PaidWorld, startPaidWorld } from '#src/demo/paid.ts';
import { lookLines, storyLines } from '#src/demo/print.ts';
import { runStory, type StoryDeps } from '#src/demo/story.ts';
import { type DemoTarget, startDemoTarget } from '#src/demo/target.ts';
import { type Config, readConfig } from '../config.ts';
import { CannotRun, type End, EXIT, oneLine } from './exit.ts';
import { awaitStop, type StopRequest } from './run-until-signal.ts';
import { paint, print, printJson } from './terminal.ts';

type Options = {
  readonly once?: true;
  readonly paid?: true;
  readonly port?: number;
  readonly dataDir?: string;
  readonly json?: true;
};

const HOST = '127.0.0.1';
const USUAL_PORT = 3402;

const HELP = `
Needs no network and no configuration: the environment's is left aside. Payment is off (demo mode), and the one
address outside the public internet that may be called is ${HOST}, where the target of the demo listens.
With --paid, payment is on: a chain and an x402 facilitator run on this machine too, and a buyer with worthless coins
pays for the call.`;

export function addDemo(program: Command, end: End): void {
  program
    .command('demo')
    .description('start the service and a target on this machine, execute one webhook, verify its receipt')
    .option('--once', 'stop when the story is told')
    .option('--paid', 'with payment: a local chain, a facilitator, and a buyer that pays')
    .option('--port <n>', `where the service listens (default: ${USUAL_PORT}, or any free port)`, readPort)
    .option('--data-dir <dir>', 'keep the data there (default: a temporary folder, removed at the end)')
    .option('--json', 'the story for machines')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      end((await demo(options)) ? EXIT.good : EXIT.foundWrong);
    });
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw new InvalidArgumentError('It must be a number from 0 to 65535.');
  return port;
}

/** Every step stands in here with what undoes it, so that a signal at any time leaves nothing behind. */
async function demo(options: Options): Promise<boolean> {
  const stop = awaitStop();
  const undo: (() => Promise<void>)[] = [];
  if (!options.json) print('Starting a relay and a webhook target on this machine …', '');
  try {
    const dataDir = options.dataDir === undefined ? await temporaryFolder(undo) : resolve(options.dataDir);
    const target = await startTarget(undo);
    if (stop.wasAsked()) return true;
    const paid = options.paid ? await startPaidWorld(undo) : null;
    if (stop.wasAsked()) return true;
    const service = await startAtUsualPort(demoConfig(options, dataDir, target, paid), options, undo);
    if (stop.wasAsked()) return true;
    return await tell({ options, dataDir, target, paid, baseUrl: service.baseUrl, stop });
  } finally {
    for (const step of undo.reverse()) await step();
    stop.release();
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

/** Nothing of the environment: what someone has configured for their service is not for a demo to use. */
function demoConfig(
  { port, json }: Options,
  dataDir: string,
  target: DemoTarget,
  paid: PaidWorld | null,
): Config {
  const config = readConfig({
    HOST,
    PORT: String(port ?? USUAL_PORT),
    DATA_DIR: dataDir,
    EGRESS_ALLOW_CIDRS: `${HOST}/32`,
    // Log lines go to standard output, which is the story's alone where a machine reads it.
    LOG_LEVEL: json ? 'silent' : 'error',
    ...paid?.environment,
  });
  return { ...config, egress: { ...config.egress, caPem: target.caPem } };
}

/** Where nobody chose a port and the usual one is taken, any free one does. */
async function startAtUsualPort(config: Config, { port }: Options, undo: (() => Promise<void>)[]) {
  const { startService, CannotListen } = await import('#src/app/service.ts');
  const at = async (listenPort: number) => {
    const service = await startService({ ...config, listen: { ...config.listen, port: listenPort } });
    undo.push(() => service.stop());
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

type Scene = {
  readonly options: Options;
  readonly dataDir: string;
  readonly target: DemoTarget;
  readonly paid: PaidWorld | null;
  readonly baseUrl: string;
  readonly stop: StopRequest;
};

async function tell({ options, dataDir, target, paid, baseUrl, stop }: Scene): Promise<boolean> {
  const deps = { baseUrl, target, folder: dataDir, primitives: verifierPrimitives };
  const { story, lines } = paid === null ? await freeStory(deps) : await paidStory(deps, paid);
  if (options.json) printJson(story);
  else print(...lines);
  if (options.once) return story.ok;
  if (!options.json) {
    print('', ...lookLines(story), '', paint('bold', `The service stays up at ${baseUrl}. Ctrl-C stops it.`));
  }
  await stop.asked;
  return story.ok;
}

async function freeStory(deps: StoryDeps) {
  const story = await runStory(deps);
  return { story, lines: storyLines(story) };
}

/** Loaded where it is needed: wallets and protocols are much to read for a demo that pays nothing. */
async function paidStory(deps: StoryDeps, paid: PaidWorld) {
  const { runPaidStory } = await import('#src/demo/paid-story.ts');
  const { paidStoryLines } = await import('#src/demo/paid-print.ts');
  const { systemClock } = await import('#src/app/buyer.ts');
  const story = await runPaidStory({ ...deps, paid, clock: systemClock() });
  return { story, lines: paidStoryLines(story) };
}
