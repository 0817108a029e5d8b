// The process of the local chain (anvil), for the demo and for tests. The service never uses it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';

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

/** Starts an empty chain on any free port of 127.0.0.1; rejects if anvil is missing or does not answer within 30 s. */
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
function listeningPort(stdout: NodeJS.ReadableStream, ended: Promise<unknown>): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    let known = false;
    const timer = setTimeout(() => reject(new Error('anvil does not answer')), 30_000);
    const settle = (act: () => void) => {
      known = true;
      clearTimeout(timer);
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
