// relay doctor: whether each part that the service needs works, before a start and beside a running service.
import { type Command, InvalidArgumentError } from 'commander';
import type { DoctorFinding } from '#src/app/doctor/finding.ts';
import { readTarget } from '#src/domain/destination/url.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { ConfigError, readServiceConfig, readVariable } from '../config.ts';
import { CannotRun, exiting } from './exit.ts';
import { mark, paint, plain, print, printJson } from './terminal.ts';

type Options = { readonly target: string; readonly live?: true; readonly json?: true };

const HELP = `
Reads the configuration as the service does. Run it as the service's user, with its environment. It may run beside a
service: it takes no lock, and writes no event; it writes to a scratch file in DATA_DIR, which it removes, and
listens at HOST and PORT for a moment if nothing does. Of the network it looks up the name of --target and calls it
once with GET, by the rules of a call, and asks for one 402 at PUBLIC_BASE_URL, where calls are paid.
No secret is printed.
--live asks only whether the service at HOST and PORT answers, for the health check of a container.
Exit status: 0 everything works (there may be warnings), 1 a problem was found, 2 it could not run.`;

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Check the configuration and each part that the service needs.')
    .option('--live', 'only ask whether the service at HOST and PORT answers')
    .option('--target <url>', 'a page that calls may reach', readTargetUrl, 'https://example.com/')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', HELP)
    .action(exiting(doctor));
}

function readTargetUrl(text: string): string {
  if (!isRefused(readTarget(text))) return text;
  throw new InvalidArgumentError('It must be an address of https.');
}

async function doctor({ target, live, json }: Options): Promise<boolean> {
  const findings: DoctorFinding[] = [];
  const show = (finding: DoctorFinding) => {
    findings.push(finding);
    if (!json) print(lineOf(finding));
  };
  for await (const finding of live ? living() : all(target)) show(finding);
  const ok = findings.every(({ state }) => state !== 'problem');
  if (json) printJson({ ok, findings });
  return ok;
}

async function* all(target: string): AsyncGenerator<DoctorFinding, void, undefined> {
  const part = 'configuration';
  try {
    const config = readServiceConfig();
    yield { part, state: 'ok', message: config.mode === 'x402' ? 'paid calls' : 'demo mode: calls are free' };
    const { examine } = await import('#src/app/doctor/examine.ts');
    yield* examine(config, target);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const { variable, problem } of error.faults)
      yield { part, state: 'problem', message: `${variable} ${problem}` };
  }
}

const LIVE_MS = 4000;

async function* living(): AsyncGenerator<DoctorFinding, void, undefined> {
  const port = readVariable('PORT');
  if (port === 0) throw new CannotRun('PORT is 0: the port of the service is not known');
  const { askLiving } = await import('#src/app/doctor/listen.ts');
  const { url, lives } = await askLiving(readVariable('HOST'), port, LIVE_MS);
  const part = 'service';
  yield lives
    ? { part, state: 'ok', message: `${url} answers` }
    : { part, state: 'problem', message: `${url} does not answer` };
}

const MARKS: Readonly<Record<DoctorFinding['state'], string>> = {
  ok: mark(true),
  problem: mark(false),
  warning: paint('yellow', '!'),
  skipped: paint('dim', '-'),
};

const lineOf = ({ part, state, message }: DoctorFinding): string =>
  `${MARKS[state]} ${part.padEnd(14)} ${plain(message)}`;
