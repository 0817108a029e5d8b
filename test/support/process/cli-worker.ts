// One `relay` command after another in one process: loading the program costs more than most commands. Each line of
// standard input is a command; after it, a mark with its exit code ends its part of standard output and standard error.
import process from 'node:process';
import { createInterface } from 'node:readline';
import type { CliCommand } from './cli.ts';

let runs = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { args, env, cwd, mark } = JSON.parse(line) as CliCommand;
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv = [...process.argv.slice(0, 2), ...args];
  process.exitCode = 0;
  // Evaluated again for each command; what it imports is loaded once.
  await import(`../../../src/cli/relay.ts?${++runs}`);
  const end = `${mark}${process.exitCode}\n`;
  process.exitCode = 0;
  for (const output of [process.stdout, process.stderr]) {
    output.removeAllListeners('error');
    output.write(end);
  }
}
