// The real service in a process of its own, under the runtime that runs the test: started, watched, stopped, killed.
import { spawn } from 'node:child_process';
import process from 'node:process';
import { runtimeCommand } from './runtime.ts';

export type Environment = Readonly<Record<string, string>>;

export type Ended = {
  /** null where a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
};

export type ServiceProcess = {
  readonly pid: number;
  /** Everything written so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it and its output have ended, however. */
  readonly ended: Promise<Ended>;
  signal(name: NodeJS.Signals): void;
};

export type Service = ServiceProcess & {
  /** Where it answers, by its own line: `http://127.0.0.1:port`. */
  readonly url: string;
  /** SIGTERM, then its end. */
  stop(): Promise<Ended>;
  /** SIGKILL, then its end. */
  kill(): Promise<Ended>;
};

const running = new Set<{ kill(signal: NodeJS.Signals): boolean }>();
// A test that threw halfway leaves nothing behind either.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export type Spawning = {
  /** Starts in place of the service, and starts it. */
  readonly script?: string;
  readonly args?: readonly string[];
  /** A program with its arguments that starts it, as under another user. */
  readonly through?: readonly string[];
};

/** Starts the service with nothing of this process's configuration. */
export function spawnService(
  env: Environment,
  { script = 'src/main.ts', args = [], through = [] }: Spawning = {},
): ServiceProcess {
  const [runtime, options] = runtimeCommand(script, args);
  const [command = runtime, ...rest] = [...through, runtime, ...options];
  const child = spawn(command, rest, {
    env: { ...inherited(), NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => running.delete(child));
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    // Not child.kill: Deno then reports that signal as the end of a process that handled it and exited with 0.
    signal: (name) => {
      if (running.has(child)) process.kill(child.pid ?? 0, name);
    },
  };
}

/**
 * Resolves when it reads its rows, or already when it listens, as where it shares a database that may be unavailable;
 * rejects where it ends before. On a loaded machine the rows open later than a read waits.
 */
export async function startService(
  env: Environment,
  until: 'rows' | 'listening' = env.DATABASE_URL === undefined ? 'rows' : 'listening',
  spawning?: Spawning,
): Promise<Service> {
  const service = spawnService({ PORT: '0', ...env }, spawning);
  const over = service.ended.then((ended) => {
    throw new Error(`the service ended (${ended.code}): ${ended.stdout}${ended.stderr}`);
  });
  over.catch(() => undefined);
  const line = await Promise.race([over, waitFor('a listening line', () => listeningLine(service))]);
  if (until === 'rows')
    await Promise.race([over, waitFor('the rows', () => rowsAreRead(`http://${line.listen}`))]);
  const end = (name: NodeJS.Signals) => {
    service.signal(name);
    return service.ended;
  };
  return {
    ...service,
    url: `http://${line.listen}`,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

async function rowsAreRead(url: string): Promise<boolean> {
  const health = await fetch(`${url}/health`);
  const { checks } = (await health.json()) as { checks: { readModels: { ok: boolean } } };
  return checks.readModels.ok;
}

export type LogLine = Readonly<Record<string, unknown>>;

/** The whole lines of standard output, each of which must be JSON. */
export function logLines(stdout: string): LogLine[] {
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

function listeningLine(service: ServiceProcess): { readonly listen: string } | undefined {
  const found = logLines(service.stdout()).find(({ msg }) => msg === 'listening');
  return typeof found?.listen === 'string' ? { listen: found.listen } : undefined;
}

const LONGEST_PAUSE_MS = 100;

/**
 * Waits until `look` gives something; rejects, with `what`, when it has not for `limitMs`. Without `everyMs` it looks less
 * often the longer it waits, as many looks read a whole log or make a signed call.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  { limitMs = 100_000, everyMs }: { readonly limitMs?: number; readonly everyMs?: number } = {},
): Promise<T> {
  const begun = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const waitedMs = performance.now() - begun;
    if (waitedMs > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    const pauseMs = everyMs ?? Math.min(Math.max(20, waitedMs / 10), LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

function inherited(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'DENO_DIR'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
