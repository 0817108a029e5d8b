// The service: read the configuration, start, stop cleanly. `bun src/main.ts [--begin-new-log]`, or `start:deno`.
import process from 'node:process';
import { runService } from '#src/app/service.ts';
import { lastWords } from '#src/app/start-errors.ts';
import { readArguments, readServiceConfig } from './config.ts';

const asked = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => asked.abort());

try {
  const options = readArguments(process.argv.slice(2));
  await runService(readServiceConfig(), asked.signal, options);
  process.exit(0);
} catch (error) {
  process.stderr.write(`${lastWords(error)}\n`);
  process.exit(2);
}
