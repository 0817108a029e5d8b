// relay witness: runs a witness of transparency logs until a signal stops it.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseWitnessLogs, policyProblemText } from '../domain/transparency/witness-policy.ts';
import { CannotRun, EXIT } from './exit.ts';
import { unreadableSource } from './read-source.ts';
import { stopSignal } from './serve.ts';
import { print, row } from './terminal.ts';

type Listen = { readonly hostname: string; readonly port: number };
type Options = {
  readonly config: string;
  readonly key: string;
  readonly state?: string;
  readonly name?: string;
  readonly listen: Listen;
  readonly begin?: true;
};

const HELP = `
A witness signs (cosigns) a checkpoint of a transparency log only if it is proven to extend the last one that it has signed,
so that no log can show two histories to readers who require its cosignature. It serves the protocol C2SP tlog-witness:
POST /add-checkpoint for logs, GET /<SHA-256 of the origin>/checkpoint for everybody.

The configuration is a policy file (C2SP tlog-policy), of which the log lines are read; the name in the key is the origin:
  log relay.example/receipts+77439582+AeW1qytK9YVOkoLjXx0MeCKnwpWs20gPdODCJxFmwXDe
The line of a relay is "log", a blank, and the answer of its /log/key. Two lines with one name are two keys of one log.

The first start creates the key file, mode 0600, and prints the verifier keys: readers and logs put one of them in the
witness line of their policy. The state is the witness's memory: back up the key file, and never restore an older state.
A key file whose state is missing is refused; --begin starts again without it.
Put a proxy with TLS in front: it may set X-Forwarded-For, by which clients are counted.

Exit status: 0 stopped by a signal, 2 could not run.

Example:
  echo "log $(curl -sf https://relay.example/log/key)" > logs.policy
  relay witness --config logs.policy --key witness.key --name witness.example/w1 --listen 127.0.0.1:3410`;

export function addWitness(program: Command): void {
  const listenOption = new Option('--listen <address>', 'where it listens')
    .argParser(readListen)
    .default({ hostname: '127.0.0.1', port: 3410 } satisfies Listen, '127.0.0.1:3410');
  program
    .command('witness')
    .description('Run a witness: cosign checkpoints of transparency logs (C2SP tlog-witness).')
    .requiredOption('--config <file>', 'the logs to witness: a policy file with log lines (C2SP tlog-policy)')
    .requiredOption('--key <file>', 'the private keys; created on the first start')
    .option('--name <name>', 'the name of its cosignatures, for the first start: witness.example/w1')
    .addOption(listenOption)
    .option('--state <file>', 'what it has cosigned (default: the key file with .state added)')
    .option('--begin', 'start with an empty state beside an existing key: what was cosigned is forgotten')
    .addHelpText('after', HELP)
    .action(witness);
}

/** `host:port`, an IPv6 host in brackets. */
function readListen(text: string): Listen {
  const [, ipv6, host, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const hostname = ipv6 ?? host;
  if (hostname === undefined || Number(port) > 65_535)
    throw new InvalidArgumentError('It must be an address and a port, such as 127.0.0.1:3410 or [::1]:3410.');
  return { hostname, port: Number(port) };
}

async function witness({ config, key, state, name, listen, begin }: Options): Promise<void> {
  const keys = readLogs(config);
  const stop = stopSignal();
  try {
    const { startWitness, witnessLogger } = await import('#src/app/witness.ts');
    const running = await startWitness({
      logs: () => keys,
      keyFile: key,
      ...(state !== undefined && { stateFile: state }),
      ...(name !== undefined && { name }),
      listen,
      begin: begin === true,
      logger: witnessLogger(),
    });
    print(
      row('witness', running.name),
      row('listens', running.url),
      row('logs', [...new Set(keys.map((one) => one.name))].join(', ')),
      row('key file', running.created ? `${key} (created: back it up)` : key),
      'Its verifier keys, Ed25519 and ML-DSA-44, for the witness line of a policy file:',
      ...running.vkeys.map((vkey) => `  ${vkey}`),
    );
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
    await running.stop();
  } finally {
    stop.release();
  }
  // The witness has ended: connections that remain open do not delay the exit.
  process.exit(EXIT.good);
}

function readLogs(file: string) {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw unreadableSource(file, error);
  }
  const { logs, problem } = parseWitnessLogs(bytes);
  if (logs === null) throw new CannotRun(`${file}: ${policyProblemText(problem)}`);
  if (logs.length === 0) throw new CannotRun(`${file} has no log line: \`log <vkey>\``);
  return logs.map((log) => log.key);
}
