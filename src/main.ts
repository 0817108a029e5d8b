// The service: read the configuration, start, stop cleanly. `bun src/main.ts`, or `start:deno`.
import process from 'node:process';
import { runService } from '#src/app/service.ts';
import { lastWords } from '#src/app/start-errors.ts';
import { readServiceConfig } from './config.ts';

const asked = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => asked.abort());

try {
  await runService(readServiceConfig(), asked.signal);
  process.exit(0);
} catch (error) {
  process.stderr.write(`${lastWords(error)}\n`);
  process.exit(2);
}
