// The process of the local chain (anvil), for the demo and for tests. The service never uses it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { withTimeout } from '#src/lib/time.ts';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Path of the binary that the package `@foundry-rs/anvil` contains for this platform; null if it has none. */
export function anvilPath(): string | null {
  const platform = `${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  try {
    const wrapper = import.meta.resolve('@foundry-rs/anvil/package.json');
    const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
    const path = manifest.replace(/package\.json$/, 'bin/anvil');
    return existsSync(path) ? path : null;
  } catch {
    return null;
  }
}

export type AnvilProcess = {
  /** Address of its JSON-RPC: `http://127.0.0.1:port`. */
  readonly url: string;
  /** Resolves when it has ended. May be called again. */
  stop(): Promise<void>;
};

/**
 * A shell that starts anvil and kills it when the shell's standard input ends: at `stop`, and also when this process dies
 * for any reason. The shell ignores the terminal's signals, which are meant for the parent process.
 */
const KILL_AT_END_OF_INPUT = `trap '' INT TERM HUP; "$@" </dev/null & read _; kill -9 $!; wait $!`;

/**
 * Starts an empty chain on any free port of 127.0.0.1; rejects if anvil is missing or does not answer within 30 s.
 * `blockSeconds`: a block after each such time too, as on a public chain; null: for transactions only.
 */
export async function startAnvil(chainId: number, blockSeconds: number | null): Promise<AnvilProcess> {
  const path = anvilPath();
  if (path === null)
    throw new Error(`@foundry-rs/anvil has no binary for ${process.platform} ${process.arch}`);
  const mining = blockSeconds === null ? '' : `--mixed-mining --block-time ${blockSeconds} `;
  const options = `${mining}--host 127.0.0.1 --port 0 --color never --chain-id ${chainId}`;
  const args = [path, ...options.split(' ')];
  const child = spawn('/bin/sh', ['-c', KILL_AT_END_OF_INPUT, 'sh', ...args], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.stdin.end();
    await ended;
  };
  try {
    const port = await listeningPort(child.stdout, ended);
    return { url: `http://127.0.0.1:${port}`, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

/** Keeps reading after the port is known: a full pipe would block anvil. */
function listeningPort(stdout: NodeJS.ReadableStream, ended: Promise<unknown>): Promise<string> {
  const known = new Promise<string>((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const port = /^Listening on 127\.0\.0\.1:(\d+)$/.exec(line)?.[1];
      if (port !== undefined) resolve(port);
    });
  });
  const failed = ended.then(() => Promise.reject(new Error('anvil ended')));
  return withTimeout(Promise.race([known, failed]), 30_000, () => new Error('anvil does not answer'));
}
