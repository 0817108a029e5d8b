// The real command line in a process of its own, under the runtime that runs the test.
import { type ChildProcess, spawn } from 'node:child_process';
import { rootPath, runtimeCommand, runtimeName } from './runtime.ts';

export type CliOptions = {
  /** Beside what a process needs to start at all; nothing else of ours is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
  /** A program it may start besides; under Deno the service's own permissions let it start none. */
  readonly mayRun?: string;
};

export type CliResult = {
  /** null where a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

export type RunningCli = {
  readonly pid: number;
  /** What it has written so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when `condition` holds on its output; rejects when it ends before. */
  until(condition: (stdout: string, stderr: string) => boolean): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<CliResult>;
};

/** `relay ARGS`. */
export function startCli(args: readonly string[], options: CliOptions = {}): RunningCli {
  const [command, [first = '', ...rest]] = runtimeCommand('src/cli/relay.ts', args);
  const permitted =
    runtimeName === 'deno' && options.mayRun !== undefined ? [`--allow-run=${options.mayRun}`] : [];
  const child = spawn(command, [first, ...permitted, ...rest], {
    cwd: options.cwd ?? rootPath,
    env: { ...inherited(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  const watch = (name: 'stdout' | 'stderr') => {
    child[name].setEncoding('utf8');
    child[name].on('data', (text: string) => {
      output[name] += text;
      for (const notice of watchers) notice();
    });
  };
  watch('stdout');
  watch('stderr');
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  const ended = endOf(child, output);
  return {
    pid: child.pid ?? 0,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    until: (condition) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!condition(output.stdout, output.stderr)) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        void ended.then(({ code }) =>
          reject(new Error(`ended (${code}) before: ${output.stdout}${output.stderr}`)),
        );
        look();
      }),
    signal: (signal) => {
      // Not `child.kill`: Deno then reports a death by that signal, whatever the process makes of it.
      if (child.pid !== undefined) process.kill(child.pid, signal);
    },
    ended,
  };
}

/** What it has written to `output`, once it and its output have ended. */
export function endOf(child: ChildProcess, output: { stdout: string; stderr: string }): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...output }));
  });
}

/** What a process needs to start at all. */
export function inherited(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'DENO_DIR'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
