// A process that counts once without a store and must then end.
import process from 'node:process';
import { quotaOver } from '#test/support/log/shared-quota.ts';

const quota = await quotaOver(() => Promise.reject(new Error('connection refused')), {});
await quota.take({ name: 'calls', windowMs: 60_000, maxRequests: 1 }, 'a');
process.stdout.write('counted\n');
