// The command line, in processes that run one command after another: starting one costs more than most commands.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { after } from 'node:test';
import { type CliOptions, type CliResult, endOf, inherited, startCli } from './cli-process.ts';
import { rootPath, runtimeCommand } from './runtime.ts';

/** One line of a worker's standard input. */
export type CliCommand = {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Begins the line that ends the command's output. */
  readonly mark: string;
};

/**
 * `relay ARGS` to its end, in a process that no other command uses meanwhile but that earlier ones may have used; in a
 * process of its own with standard input. That no command keeps its process alive is checked at the end of
 * the run's file or files.
 */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  if (options.stdin !== undefined || options.mayRun !== undefined) return startCli(args, options).ended;
  // One that has ended meanwhile, as by the kernel, runs nothing: the end of the files reports it.
  const at = idle.findIndex((one) => !one.isOver());
  const [found] = at < 0 ? [] : idle.splice(at, 1);
  const worker = found ?? startWorker();
  const mark = `\0${randomUUID()} `;
  const env = { ...inherited(), ...options.env };
  const result = await worker.run({ args, env, cwd: options.cwd ?? rootPath, mark });
  if (!worker.isOver()) idle.push(worker);
  return result;
}

type Worker = {
  run(command: CliCommand): Promise<CliResult>;
  isOver(): boolean;
  /** Ends its input. Resolves with its exit code, once nothing keeps it alive. */
  end(): Promise<number | null>;
  kill(): void;
};

const workers = new Set<Worker>();
const idle: Worker[] = [];
process.once('exit', () => {
  for (const worker of workers) worker.kill();
});
after(async () => {
  const ends = await Promise.all(idle.splice(0).map((worker) => worker.end()));
  if (ends.some((code) => code !== 0))
    throw new Error(`processes of commands ended with ${ends.map(String)}`);
});

function startWorker(): Worker {
  const [command, args] = runtimeCommand(new URL('./cli-worker.ts', import.meta.url).pathname);
  const child = spawn(command, args, { cwd: rootPath, env: inherited(), stdio: ['pipe', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  let look = () => {};
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
      look();
    });
  child.stdin.on('error', () => undefined);
  let over = false;
  const ended = endOf(child, output).finally(() => {
    over = true;
    workers.delete(worker);
  });
  const worker: Worker = {
    run: (given) => {
      output.stdout = '';
      output.stderr = '';
      const done = new Promise<CliResult>((resolve) => {
        look = () => {
          const [stdout, code] = output.stdout.split(given.mark);
          const [stderr, again] = output.stderr.split(given.mark);
          if (code?.endsWith('\n') && again?.endsWith('\n'))
            resolve({ code: Number(code), stdout: stdout ?? '', stderr: stderr ?? '' });
        };
      });
      child.stdin.write(`${JSON.stringify(given)}\n`);
      return Promise.race([done, ended]);
    },
    isOver: () => over,
    end: async () => {
      child.stdin.end();
      return (await ended).code;
    },
    kill: () => child.kill('SIGKILL'),
  };
  workers.add(worker);
  return worker;
}
