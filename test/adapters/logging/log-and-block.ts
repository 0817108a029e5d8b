// A process for pino.test.ts: logs as many lines as its argument, and then blocks its event loop. Lines that were not
// written synchronously are never written.
import { pinoLogger } from '#src/adapters/logging/pino.ts';

const log = pinoLogger({ level: 'info', to: 'stdout' });
for (let n = 0; n < Number(process.argv[2]); n++) log.info('line', { n, filler: 'x'.repeat(100) });
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
process.kill(process.pid, 'SIGKILL');
