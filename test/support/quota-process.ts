// A process of its own that counts once without a store, and has nothing more to do.
import process from 'node:process';
import { quotaOver } from './shared-quota.ts';

const quota = await quotaOver(() => Promise.reject(new Error('nobody listens')), {});
await quota.take({ name: 'calls', windowMs: 60_000, maxRequests: 1 }, 'a');
process.stdout.write('counted\n');
