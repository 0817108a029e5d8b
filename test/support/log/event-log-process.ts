// Starts a program of this project with the runtime that runs the test, and follows the lines it prints.
import { type ChildProcess, spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Program = {
  readonly child: ChildProcess;
  /** Whole lines of standard output so far. */
  readonly lines: readonly string[];
  /** Resolves once that many lines (that begin so) came, or the process ended. */
  printed(count: number, beginning?: string): Promise<void>;
  /** Resolves when the process and its output ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
};

/** `launcher`: a command that runs the rest of its arguments, as `sh -c '…; exec "$@"' sh`. */
export function startProgram(
  url: string,
  args: readonly string[],
  launcher: readonly string[] = [],
): Program {
  const run = 'Deno' in globalThis ? ['run', '--allow-all', '--no-check'] : [];
  const [command = '', ...rest] = [...launcher, process.execPath, ...run, fileURLToPath(url), ...args];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  const waiters = new Set<() => void>();
  const notify = () => {
    for (const waiter of [...waiters]) waiter();
  };
  let over = false;
  let stderr = '';
  child.stderr?.on('data', (chunk: unknown) => {
    stderr += String(chunk);
  });
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line: string) => {
    lines.push(line);
    notify();
  });
  const read = new Promise<void>((resolve) => reader.on('close', resolve));
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const ended = Promise.all([exited, read]).then(([code]) => {
    over = true;
    notify();
    return { code, stderr };
  });
  const printed = (count: number, beginning = '') =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (lines.filter((line) => line.startsWith(beginning)).length < count && !over) return;
        waiters.delete(look);
        resolve();
      };
      waiters.add(look);
      look();
    });
  return { child, lines, printed, ended };
}
