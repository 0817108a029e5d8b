// A process of its own for pino.test.ts: logs as many lines as its argument says and exits at once.
import { pinoLogger } from '#src/adapters/logging/pino.ts';

const log = pinoLogger({ level: 'info', to: 'stdout' });
for (let n = 0; n < Number(process.argv[2]); n++) log.info('line', { n, filler: 'x'.repeat(100) });
process.exit(0);
