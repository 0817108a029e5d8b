// relay serve: runs the service until a signal stops it.
import type { Command } from 'commander';
import type { StartOptions } from '#src/app/service.ts';
import { BEGIN_NEW_LOG, readServiceConfig } from '../config.ts';
import { variableList } from '../config-variables.ts';
import { EXIT } from './exit.ts';

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('Run the service. It is configured by the environment and stopped by SIGTERM or Ctrl-C.')
    .option(BEGIN_NEW_LOG, 'give the event log up that was in use, if it is missing, empty or another one')
    .addHelpText('after', () => `${BEGIN_HELP}\n\nVariables:\n${variableList()}`)
    .action(serve);
}

const BEGIN_HELP = `
The service does not start without the event log that was in use: the key file, event-log.json or checkpoint.note in DATA_DIR
remember it. Put it back. Only if it is lost, start once with ${BEGIN_NEW_LOG}, which prints what that means:
  - calls that were answered are sent again if they are repeated, and charged again if the repeat pays with a new payment;
  - payments of the lost log cannot be resumed, looked up or refunded here;
  - receipts of the lost log verify as before;
  - checkpoints begin again, in a transparency log with a name of its own.
It is refused in any other state.`;

async function serve(options: StartOptions): Promise<void> {
  const config = readServiceConfig();
  const stop = stopSignal();
  try {
    const { runService } = await import('#src/app/service.ts');
    await runService(config, stop.signal, options);
  } finally {
    stop.release();
  }
  // The service has ended: connections that remain open do not delay the exit.
  process.exit(EXIT.good);
}

/** Ctrl-C, a supervisor's stop, a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** `signal` is aborted by the first of these; later ones have no effect until `release` restores their default. */
export function stopSignal(): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const stop = () => controller.abort();
  for (const name of SIGNALS) process.on(name, stop);
  return {
    signal: controller.signal,
    release() {
      for (const name of SIGNALS) process.off(name, stop);
    },
  };
}
