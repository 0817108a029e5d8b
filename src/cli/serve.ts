// relay serve: runs the service until a signal stops it.
import type { Command } from 'commander';
import { readServiceConfig } from '../config.ts';
import { variableList } from '../config-variables.ts';
import { EXIT } from './exit.ts';

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('Run the service. It is configured by the environment and stopped by SIGTERM or Ctrl-C.')
    .addHelpText('after', () => `\nVariables:\n${variableList()}`)
    .action(serve);
}

async function serve(): Promise<void> {
  const config = readServiceConfig();
  const stop = stopSignal();
  try {
    const { runService } = await import('#src/app/service.ts');
    await runService(config, stop.signal);
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
