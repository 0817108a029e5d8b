#!/usr/bin/env bun
// The command line: which commands there are, and how each one ends (0 good, 1 found wrong, 2 could not run).
// What a command does is left to its own file, and everything behind that to the use cases.
import { Command, CommanderError } from 'commander';
import { SERVICE } from '../domain/limits.ts';
import { addAudit } from './audit.ts';
import { addDemo } from './demo.ts';
import { EXIT, type ExitCode, exitOf, oneLine } from './exit.ts';
import { addExport } from './export.ts';
import { addKeys } from './keys.ts';
import { addMigrate } from './migrate.ts';
import { addPay } from './pay.ts';
import { addPayments } from './payments.ts';
import { addRebuild } from './rebuild.ts';
import { addServe } from './serve.ts';
import { complain, endWithOutput } from './terminal.ts';
import { addVerify } from './verify.ts';

const EXAMPLES = `
Examples:
  relay demo                                     see the whole thing work on this machine
  relay verify receipt.json --keys jwks.json     check a receipt, offline
  relay serve                                    run the service

Exit status: 0 good, 1 something was found wrong, 2 the command could not run.`;

async function run(args: readonly string[]): Promise<ExitCode> {
  let exit: ExitCode = EXIT.good;
  const end = (code: ExitCode) => {
    exit = code;
  };
  endWithOutput(() => exit);
  const program = new Command('relay')
    .description(
      'A relay that makes one outbound HTTPS request and answers with a receipt anyone can verify.',
    )
    .version(SERVICE.version)
    // A command's options stand behind its name, so that one and its parts may each have a --json.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
    .configureOutput({
      outputError: (text) => complain(`${oneLine(text.replace(/^error: /, ''))} (see --help)`),
    })
    .exitOverride();
  for (const add of [
    addServe,
    addDemo,
    addVerify,
    addExport,
    addAudit,
    addMigrate,
    addKeys,
    addPay,
    addPayments,
    addRebuild,
  ])
    add(program, end);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exit;
  } catch (error) {
    // Commander has said it already, on the stream where it belongs.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.good : EXIT.couldNotRun;
    complain(oneLine(error));
    return exitOf(error);
  }
}

process.exitCode = await run(process.argv.slice(2));
