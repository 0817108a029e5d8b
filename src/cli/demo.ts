// relay demo: starts the service and a target on this machine, executes one webhook, verifies its receipt, and leaves
// nothing behind.
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import type { PaidWorld } from '#src/demo/paid.ts';
import { freeCaller, runStory, type Story, StoryFailed } from '#src/demo/story.ts';
import { startDemoTarget } from '#src/demo/target.ts';
import { startDemoWitnesses } from '#src/demo/witnesses.ts';
import { type Config, readConfig } from '../config.ts';
import { CannotRun, exiting, FoundWrong, oneLine } from './exit.ts';
import { stopSignal } from './serve.ts';
import { heading, paint, print, printJson, row, shown } from './terminal.ts';
import { checkLines, factLines } from './verify.ts';

type Options = {
  readonly once?: true;
  readonly paid?: true;
  readonly schedules?: true;
  readonly json?: true;
};

const HOST = '127.0.0.1';
const PORT = 3402;

const HELP = `
Needs no network and no configuration: the environment is ignored. Payment is off (demo mode), and the only address
outside the public internet that may be called is ${HOST}, where the target of the demo listens. The service listens on
port ${PORT}, or on any free one.
With --paid, payment is on: a chain and an x402 facilitator run on this machine too, and a buyer with worthless coins
pays for the call. Its wallet pays for 1,000 calls; the variables that relay pay and the snippets read are printed as
export lines, with the addresses of the node and the facilitator. With --schedules too, the service sells runs of
schedules, and the line that buys two is printed. One address of the target answers 503 each time, for retries.`;

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('Start the service and a target on this machine, execute one webhook, verify its receipt.')
    .option('--once', 'exit after the first execution')
    .option('--paid', 'with payment: a local chain, a facilitator, and a buyer that pays')
    .option('--schedules', 'with --paid: sell runs of schedules too')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(exiting(demo));
}

/** `undo` collects the function that reverts each step, so that a signal at any time leaves nothing behind. */
async function demo(options: Options): Promise<boolean> {
  if (options.schedules && !options.paid) throw new CannotRun('--schedules needs --paid: runs are paid for');
  const { signal, release } = stopSignal();
  const undo: (() => Promise<void>)[] = [];
  if (!options.json) print('Starting a relay and a webhook target on this machine …', '');
  try {
    const folder = await mkdtemp(join(tmpdir(), 'relay-demo-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    const target = await startDemoTarget(HOST);
    undo.push(() => target.close());
    if (signal.aborted) return true;
    // Loaded on use: wallets and protocols are large for a demo that pays nothing.
    const payments = options.paid ? await import('#src/demo/paid.ts') : null;
    const paid = payments && (await payments.startPaidWorld(undo));
    if (signal.aborted) return true;
    const witnesses = await startDemoWitnesses(folder, undo);
    const config = demoConfig(options, folder, target.caPem, {
      ...paid?.environment,
      ...(options.schedules ? { SCHEDULES: 'on' } : {}),
      ...witnesses.environment,
    });
    const baseUrl = await startService(config, undo);
    await witnesses.witness(baseUrl);
    if (signal.aborted) return true;
    const primitives = verifierPrimitives;
    const caller = paid && payments ? payments.paidCaller(baseUrl, primitives, paid) : freeCaller(baseUrl);
    const story = await runStory({ baseUrl, target, folder, primitives, caller, witnesses });
    if (options.json) printJson(story);
    else print(...storyLines(story));
    if (options.once) return story.ok;
    const exports = paid && payments ? await payments.exportLines(paid, baseUrl, target.url) : null;
    const schedule = payments && options.schedules ? join(folder, 'schedule.json') : null;
    if (payments && schedule !== null)
      await writeFile(
        schedule,
        `${JSON.stringify(payments.exampleSchedule(target.url, Date.now()), null, 2)}\n`,
      );
    const more = paid && exports ? { paid, exports, schedule } : null;
    if (!options.json) print('', ...linkLines(story, folder, target.failingUrl, more));
    if (!signal.aborted) await once(signal, 'abort');
    return story.ok;
  } catch (error) {
    throw error instanceof StoryFailed ? new FoundWrong(error.message, { cause: error }) : error;
  } finally {
    for (const step of undo.reverse()) await step();
    release();
  }
}

/** Ignores the environment: the configuration of a real service must not affect the demo. */
function demoConfig(
  { json }: Options,
  folder: string,
  caPem: string,
  environment: Readonly<Record<string, string>>,
): Config {
  const config = readConfig({
    HOST,
    PORT: String(PORT),
    DATA_DIR: folder,
    EGRESS_ALLOW_CIDRS: `${HOST}/32`,
    // Log lines go to standard output, which contains only JSON with --json.
    LOG_LEVEL: json ? 'silent' : 'error',
    ...environment,
  });
  return { ...config, egress: { ...config.egress, caPem } };
}

/** Returns its address: on any free port if the default one is in use. */
async function startService(config: Config, undo: (() => Promise<void>)[]): Promise<string> {
  const { startService, CannotListen } = await import('#src/app/service.ts');
  const at = async (port: number) => {
    const service = await startService({ ...config, listen: { ...config.listen, port } });
    undo.push(() => service.stop());
    await service.opened;
    return service.baseUrl;
  };
  try {
    return await at(PORT).catch((cause: unknown) => {
      if (cause instanceof CannotListen) return at(0);
      throw cause;
    });
  } catch (cause) {
    throw new CannotRun(`the service does not start: ${oneLine(cause)}`, { cause });
  }
}

function storyLines(story: Story): readonly string[] {
  const { service, received, job, receipt, files, verification, facts, ok } = story;
  const webhookHeaders = Object.entries(received.headers).filter(([name]) => name.startsWith('webhook-'));
  return [
    heading('One webhook, executed and repeated'),
    row('relay', `POST ${service}/api/execute/webhook`),
    row('target received', `${received.method} ${received.path}`),
    row('body', shown(received.body)),
    ...webhookHeaders.map(([name, value]) => row(name, shown(value))),
    row('job', `${job.id}, ${job.status}, attempts: ${job.attempts}`),
    row('receipt', `${receipt.id}, signed by ${receipt.keyId}`),
    '',
    heading('The receipt, verified offline with four saved files only'),
    ...Object.entries(files).map(([name, file]) => row(name, file)),
    ...checkLines(verification),
    '',
    heading('Checked in this run'),
    ...factLines(facts),
    '',
    ok
      ? paint('green', 'Everything is as expected.')
      : paint('red', 'Something is NOT as expected: see above.'),
  ];
}

const RELAY = 'npx bun src/cli/relay.ts';

const PAY = `${RELAY} pay "$TARGET" --relay "$RELAY" --pay-to "$PAY_TO" --key order-1`;

/**
 * `exports`: among them the key of a wallet with worthless coins of a chain that ends with the demo. `schedule`: a file to
 * buy runs of; null: none are sold.
 */
type Payments = {
  readonly paid: Pick<PaidWorld, 'nodeUrl' | 'facilitatorUrl'>;
  readonly exports: readonly string[];
  readonly schedule: string | null;
};

/** Shown while the service runs. `payments` null: nothing is paid. */
function linkLines(
  { service, links, files }: Story,
  folder: string,
  failingUrl: string,
  payments: Payments | null,
): readonly string[] {
  const verify = `${RELAY} verify ${files.receipt} --keys ${files.keys} --proof ${files.proof} --policy ${files.policy}`;
  return [
    heading('Try it yourself'),
    row('front page', `${service}/`),
    ...Object.entries(links).map(([name, url]) => row(name, url)),
    row('offline', verify),
    row('event log', `DATA_DIR=${folder} ${RELAY} export --out ${join(folder, 'log.ndjson')}`),
    row('failing target', `${failingUrl} (503 each time: with retry.attempts above 1 it is called again)`),
    ...(payments === null ? [] : paymentLines(payments)),
    '',
    heading(`The service runs at ${service}. Ctrl-C stops it.`),
  ];
}

function paymentLines({ paid, exports, schedule }: Payments): readonly string[] {
  const runs = `${RELAY} pay --schedule ${schedule} --runs 2 --max-usd 0.006 --relay "$RELAY" --pay-to "$PAY_TO"`;
  return [
    row('node', paid.nodeUrl),
    row('facilitator', paid.facilitatorUrl),
    '',
    heading('Buy more calls: run these lines in another shell'),
    ...exports,
    PAY,
    ...(schedule === null ? [] : ['', heading('Buy two runs of a schedule, with the same variables'), runs]),
  ];
}
