// Entry of the worker threads of an audit.
import { parentPort } from 'node:worker_threads';
import { answerReceipts } from '#src/adapters/audit/receipt-workers.ts';
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';

if (parentPort !== null) answerReceipts(parentPort, { ed25519Verify, mlDsa44Verify });
