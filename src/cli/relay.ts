#!/usr/bin/env bun
// The command line: the list of commands, and the exit code of each (0 good, 1 problem found, 2 could not run).
import { Command, CommanderError } from 'commander';
import { builtCommit } from '../assets.ts';
import { SERVICE } from '../domain/limits.ts';
import { addAudit } from './audit.ts';
import { addBackup, addRestore } from './backup.ts';
import { addCompletion } from './completion.ts';
import { addConsistency } from './consistency.ts';
import { addDemo } from './demo.ts';
import { addDoctor } from './doctor.ts';
import { errorText, exitOf, oneLine } from './exit.ts';
import { addExport } from './export.ts';
import { addKeys } from './keys.ts';
import { addPay } from './pay.ts';
import { addPayments } from './payments.ts';
import { addMigrate, addRebuild } from './rebuild.ts';
import { addServe } from './serve.ts';
import { endWithOutput, printError } from './terminal.ts';
import { addVerify } from './verify.ts';
import { addWitness } from './witness.ts';

const COMMANDS = [
  addServe,
  addDoctor,
  addDemo,
  addVerify,
  addConsistency,
  addExport,
  addAudit,
  addMigrate,
  addKeys,
  addPay,
  addPayments,
  addRebuild,
  addBackup,
  addRestore,
  addWitness,
  addCompletion,
];

const EXAMPLES = `
Examples:
  relay demo                                              execute one webhook and verify its receipt here
  relay serve                                             run the service
  relay verify receipt.json --keys jwks.json              verify a receipt offline
  relay consistency kept.checkpoint https://relay.example has the log kept what my checkpoint covers?
  relay audit --events log.ndjson --keys jwks.json        audit an export of the event log
  relay pay https://target.example/hook --relay https://relay.example --dry-run
                                                          compare an offer with your limits, and pay nothing
  source <(relay completion bash)                         complete commands and options

Exit status: 0 good, 1 a problem was found, 2 the command could not run.`;

/** Of the binary, its commit too. */
function versionLine(): string {
  const commit = builtCommit();
  return commit === null ? SERVICE.version : `${SERVICE.version} (commit ${commit})`;
}

async function run(args: readonly string[]): Promise<void> {
  endWithOutput();
  const program = new Command('relay')
    .description('Make one outbound HTTPS request per call and return a receipt that anyone can verify.')
    .version(versionLine())
    // Options follow their command, so that a command and its subcommands can each have --json.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
    .configureOutput({
      outputError: (text) => printError(`${oneLine(text.replace(/^error: /, ''))} (see --help)`),
    })
    .exitOverride();
  for (const add of COMMANDS) add(program);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = exitOf(error);
    // Commander has printed its own.
    if (!(error instanceof CommanderError)) printError(errorText(error));
  }
}

await run(process.argv.slice(2));
