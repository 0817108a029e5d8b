// Receipts of an audit, judged by worker threads: a batch is text, which costs least to hand over, and goes to a thread with
// few batches before it. What no thread has room for, this one judges, so that none waits for another.
import { setImmediate } from 'node:timers/promises';
import type { MessagePort, Worker } from 'node:worker_threads';
import type { Fault } from '#src/domain/audit/finding.ts';
import {
  judgeReceipt,
  type ReceiptCase,
  type ReceiptEvidence,
  receiptCase,
} from '#src/domain/audit/judge-receipt.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { ReceiptJudge } from '#src/ports/receipt-judge.ts';

const BATCH = 32;
/** Batches that a thread has before it. */
const AHEAD = 3;

type Options = {
  /** The most threads; they are started when there is work for them. */
  readonly threads: number;
  /** A thread that runs `answerReceipts`. */
  readonly start: () => Worker;
  readonly primitives: Primitives;
  /** Receipts of a batch. */
  readonly batchSize?: number;
};

type Waiting = {
  readonly receipt: ReceiptCase;
  readonly resolve: (faults: readonly Fault[] | Promise<readonly Fault[]>) => void;
  readonly reject: (error: Error) => void;
};

/** `keys`: of all receipts. */
type Batch = { readonly keys: readonly KeyRecord[]; readonly receipts: readonly ReceiptEvidence[] };

/** A text has the faults of each receipt of a batch. */
type Answer = string | { readonly error: unknown };

export function receiptWorkers({
  threads: most,
  start,
  primitives,
  batchSize = BATCH,
}: Options): ReceiptJudge {
  const threads: ReturnType<typeof opened>[] = [];
  let batch: Waiting[] = [];
  let failure: Error | null = null;
  let mayBeAnswered = false;

  function opened() {
    const worker = start();
    /** In their order, in which they are answered. */
    const batches: (readonly Waiting[])[] = [];
    const fail = (cause: unknown) => {
      failure ??= new Error('a worker thread of the audit has failed', { cause });
      for (const each of batches.splice(0).flat()) each.reject(failure);
    };
    worker.on('message', (answer: Answer) => {
      if (typeof answer !== 'string') return fail(answer.error);
      const faults: readonly (readonly Fault[])[] = JSON.parse(answer);
      batches.shift()?.forEach(({ resolve }, n) => {
        resolve(faults[n] ?? []);
      });
    });
    worker.on('error', fail);
    worker.on('exit', (code) => fail(new Error(`it ended with status ${code}`)));
    return {
      hasRoom: () => batches.length < AHEAD,
      post(waiting: readonly Waiting[], keys: readonly KeyRecord[]): void {
        batches.push(waiting);
        mayBeAnswered = true;
        const receipts = waiting.map(({ receipt: { events, signed } }) => ({ events, signed }));
        worker.postMessage(JSON.stringify({ keys, receipts } satisfies Batch));
      },
      end: () => void worker.terminate(),
    };
  }

  /** `isWhole`: the batch is worth a thread of its own. */
  function handOver(isWhole: boolean): void {
    const waiting = batch;
    const [first] = waiting;
    batch = [];
    if (first === undefined) return;
    let thread = threads.find((each) => each.hasRoom());
    if (thread === undefined && isWhole && threads.length < most) {
      thread = opened();
      threads.push(thread);
    }
    if (failure !== null) for (const { reject } of waiting) reject(failure);
    else if (thread !== undefined) thread.post(waiting, first.receipt.keys);
    else for (const { receipt, resolve } of waiting) resolve(judgeReceipt(receipt, primitives));
  }

  return {
    judge(receipt) {
      if (batch[0] !== undefined && batch[0].receipt.keys !== receipt.keys) handOver(false);
      return new Promise((resolve, reject) => {
        batch.push({ receipt, resolve, reject });
        if (batch.length >= batchSize) handOver(true);
      });
    },
    flush: () => handOver(false),
    async receive() {
      if (!mayBeAnswered) return;
      mayBeAnswered = false;
      await setImmediate();
    },
    close() {
      for (const thread of threads) thread.end();
    },
  };
}

/** In a worker thread. */
export function answerReceipts(port: Pick<MessagePort, 'on' | 'postMessage'>, primitives: Primitives): void {
  let before = Promise.resolve();
  port.on('message', (text: string) => {
    before = before.then(async () => port.postMessage(await answerTo(text, primitives)));
  });
}

async function answerTo(text: string, primitives: Primitives): Promise<Answer> {
  try {
    const { keys, receipts }: Batch = JSON.parse(text);
    const faults: (readonly Fault[])[] = [];
    for (const evidence of receipts) faults.push(await judgeReceipt(receiptCase(evidence, keys), primitives));
    return JSON.stringify(faults);
  } catch (error) {
    return { error };
  }
}
