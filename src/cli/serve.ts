// relay serve: the service, until it is told to stop.
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { type End, EXIT } from './exit.ts';
import { awaitStop } from './until-signal.ts';

export function addServe(program: Command, end: End): void {
  program
    .command('serve')
    .description('run the service; configured by the environment, stopped by SIGTERM or Ctrl-C')
    .action(async () => {
      await serve();
      end(EXIT.good);
    });
}

async function serve(): Promise<void> {
  const config = readConfig();
  const stop = awaitStop();
  try {
    const { startService } = await import('../wiring.ts');
    const service = await startService(config);
    await stop.asked;
    await service.stop();
  } finally {
    stop.release();
  }
}
