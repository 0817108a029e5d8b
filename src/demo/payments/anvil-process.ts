// A real chain and a real facilitator on this machine, for the demo and for tests: anvil's process, a token of our own
// at USDC's address, and the stock x402 facilitator. Worthless coins only; nothing here takes part in the service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Path of the binary that the package `@foundry-rs/anvil` brings for this platform; null where it has none. */
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
  /** Where its JSON-RPC answers: `http://127.0.0.1:port`. */
  readonly url: string;
  /** Resolves when it has ended. May be called again. */
  stop(): Promise<void>;
};

/**
 * The shell that anvil runs under kills it when its own standard input ends: at `stop`, and also when this process has
 * died of whatever. Deaf to signals of the terminal, which mean the parent.
 */
const KEEPER = `trap '' INT TERM HUP; "$@" </dev/null & read _; kill -9 $!; wait $!`;

/** Starts an empty chain on any free port of 127.0.0.1; rejects where anvil is missing or does not answer in 30 s. */
export async function startAnvil(chainId: number): Promise<AnvilProcess> {
  const path = anvilPath();
  if (path === null)
    throw new Error(`@foundry-rs/anvil has no binary for ${process.platform} ${process.arch}`);
  const args = [
    path,
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--chain-id',
    String(chainId),
    '--color',
    'never',
  ];
  const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', ...args], {
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

/** Reads on for as long as it writes: a full pipe would halt it. */
function listeningPort(stdout: NodeJS.ReadableStream, ended: Promise<unknown>): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    let known = false;
    const late = setTimeout(() => reject(new Error('anvil does not answer')), 30_000);
    const settle = (act: () => void) => {
      known = true;
      clearTimeout(late);
      act();
    };
    stdout.on('data', (chunk: Buffer) => {
      if (known) return;
      text += chunk.toString();
      const port = /^Listening on 127\.0\.0\.1:(\d+)$/m.exec(text)?.[1];
      if (port !== undefined) settle(() => resolve(Number(port)));
    });
    ended.then(
      () => settle(() => reject(new Error(`anvil ended: ${text.slice(-500)}`))),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}
