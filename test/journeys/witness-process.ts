// `relay witness` in a process of its own, on one port: it is killed or stopped, and started again as the same witness.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliResult, type RunningCli, startCli } from '#test/support/process/cli-process.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';

export type WitnessProcess = {
  readonly url: string;
  /** The verifier keys: Ed25519, ML-DSA-44. */
  readonly vkeys: readonly [string, string];
  /** Its files: the key file, and beside it `.state`. */
  readonly keyFile: string;
  /** On the same port, with the same key and state. `more`: further arguments. */
  start(...more: readonly string[]): Promise<void>;
  kill(): Promise<CliResult>;
  stop(): Promise<CliResult>;
};

const VKEYS = /\n {2}(\S+\+[0-9a-f]{8}\+\S+)\n {2}(\S+\+[0-9a-f]{8}\+\S+)\n/;

/** Starts it. `name`: of its cosignatures, and of its files in `folder`. The test ends it. */
export async function startWitnessProcess(
  folder: string,
  name: string,
  logs: readonly string[],
): Promise<WitnessProcess> {
  const file = join(folder, name.replaceAll(/\W/g, '-'));
  const [keyFile, config] = [`${file}.key`, `${file}.policy`];
  const port = await fixedPort();
  let running: RunningCli | null = null;
  writeFileSync(config, logs.map((vkey) => `log ${vkey}\n`).join(''));
  async function start(...more: readonly string[]): Promise<readonly [string, string]> {
    const listen = ['--listen', `127.0.0.1:${port}`];
    const cli = startCli(['witness', '--config', config, '--key', keyFile, ...listen, ...more]);
    running = cli;
    await cli.until((stdout) => VKEYS.test(stdout));
    const [, ed25519 = '', mlDsa44 = ''] = VKEYS.exec(cli.stdout()) ?? [];
    return [ed25519, mlDsa44];
  }
  async function end(signal: NodeJS.Signals): Promise<CliResult> {
    const cli = running ?? assert.fail('it does not run');
    running = null;
    cli.signal(signal);
    return cli.ended;
  }
  const vkeys = await start('--name', name);
  return {
    url: `http://127.0.0.1:${port}`,
    vkeys,
    keyFile,
    async start(...more) {
      assert.deepEqual(await start(...more), vkeys);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
