// relay serve: the service, until it is told to stop.
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { type End, EXIT } from './exit.ts';
import { awaitStop } from './run-until-signal.ts';

export function addServe(program: Command, end: End): void {
  program
    .command('serve')
    .description('run the service; configured by the environment, stopped by SIGTERM or Ctrl-C')
    .action(async () => {
      await serve();
      end(EXIT.good);
      // Whatever still waits for somebody else: the service has ended.
      process.exit(EXIT.good);
    });
}

async function serve(): Promise<void> {
  const config = readConfig();
  const stop = awaitStop();
  const asked = new AbortController();
  void stop.asked.then(() => asked.abort());
  try {
    const { runService } = await import('#src/app/service.ts');
    await runService(config, asked.signal);
  } finally {
    stop.release();
  }
}
