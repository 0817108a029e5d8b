// An audit whose receipts are judged by worker threads: it finds what one thread finds, in the same order, whatever was
// changed in the record and however many threads there are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { receiptWorkers } from '#src/adapters/audit/receipt-workers.ts';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type { ReceiptJudge } from '#src/ports/receipt-judge.ts';
import { Auditor } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { kinds, mutableRecord, rememberedPrimitives } from '#test/support/given/mutable-record.ts';
import { mutations, swapsAcrossStreams } from '#test/support/given/mutations.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';

const { events } = (await mutableRecord()).log;
const primitives = rememberedPrimitives();

async function run(all: readonly RecordedEvent[], receipts?: ReceiptJudge) {
  const findings: Finding[] = [];
  const auditor = new Auditor({
    primitives,
    scratch: memoryScratch<ScratchRow>(),
    onFinding: (finding) => findings.push(finding),
    // Many audits use its threads.
    ...(receipts && { receipts: { ...receipts, close: () => undefined } }),
  });
  for (const event of all) await auditor.take(event);
  const summary = await auditor.finish();
  auditor.close();
  return { findings, summary };
}

/** `answered`: receipts that the threads were given. */
function workers(threads: number, batchSize: number) {
  let answered = 0;
  const start = () => {
    const worker = new Worker(new URL('../../../src/app/audit-worker.ts', import.meta.url));
    worker.on('message', (answer: string) => {
      answered += JSON.parse(answer).length;
    });
    return worker;
  };
  return { answered: () => answered, ...receiptWorkers({ threads, start, primitives, batchSize }) };
}

test('one, two and three threads find what none finds, each for a third of the changes of each event', async () => {
  const judges = [workers(1, 1), workers(2, 2), workers(3, 3)];
  const wrong: string[] = [];
  let number = 0;
  try {
    for (const { name, events: changed } of [
      ...mutations(events, kinds(events)),
      ...swapsAcrossStreams(events, kinds(events)),
    ]) {
      const [alone, shared] = [await run(changed), await run(changed, judges[number++ % judges.length])];
      if (JSON.stringify(alone.findings) !== JSON.stringify(shared.findings)) wrong.push(name);
      assert.deepEqual(shared.summary, alone.summary, name);
    }
  } finally {
    for (const judge of judges) judge.close();
  }
  assert.deepEqual(wrong, []);
  for (const { answered } of judges)
    assert.ok(answered() > 100, `${answered()} receipts were judged by threads`);
});

for (const [what, code, cause] of [
  ['throws', "throw new Error('no memory')", /no memory/],
  ['ends', 'process.exit(3)', /status 3/],
  [
    'answers an error',
    "require('node:worker_threads').parentPort.on('message', () => { require('node:worker_threads').parentPort.postMessage({ error: new Error('bad batch') }) })",
    /bad batch/,
  ],
] as const)
  test(`a thread that ${what} fails the audit, with the cause, also for receipts that follow`, async () => {
    const judge = receiptWorkers({
      threads: 2,
      start: () => new Worker(code, { eval: true }),
      primitives,
      batchSize: 1,
    });
    const isFailure = (error: unknown) => {
      assert.match(String(error), /a worker thread of the audit has failed/);
      assert.match(String((error as Error).cause), cause);
      return true;
    };
    try {
      await assert.rejects(run(events, judge), isFailure);
      await assert.rejects(run(events, judge), isFailure);
    } finally {
      judge.close();
    }
  });
