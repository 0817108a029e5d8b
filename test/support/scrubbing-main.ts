// The service with a scrub every 200 ms instead of every hour. Started in place of `src/main.ts`.
import process from 'node:process';
import { runService } from '#src/app/service.ts';
import { lastWords } from '#src/app/start-errors.ts';
import { readServiceConfig } from '#src/config.ts';

const asked = new AbortController();
process.once('SIGTERM', () => asked.abort());
try {
  await runService(readServiceConfig(), asked.signal, { scrubEveryMs: 200 });
  process.exit(0);
} catch (error) {
  process.stderr.write(`${lastWords(error)}\n`);
  process.exit(2);
}
