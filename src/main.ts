// The service: read the configuration, start, stop cleanly. `bun src/main.ts`, or `start:deno`.
import process from 'node:process';
import { runService } from '#src/app/service.ts';
import { ConfigError, readServiceConfig } from './config.ts';

const asked = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => asked.abort());

try {
  await runService(readServiceConfig(), asked.signal);
  process.exit(0);
} catch (error) {
  // A known error has a message for the operator; any other is a bug, so its stack is printed.
  const known = error instanceof ConfigError || (error instanceof Error && error.name !== 'Error');
  process.stderr.write(`${known ? (error as Error).message : String((error as Error)?.stack ?? error)}\n`);
  process.exit(2);
}
