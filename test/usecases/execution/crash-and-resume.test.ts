// A process that dies at any step of a paid call: the same payment continues, is charged once and executes once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { execute } from '#test/support/given/given-call.ts';
import { Crash, dies, diesInSend } from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { audited, shared, type World, world } from '#test/support/world/fakes-world.ts';

type Death = (it: World) => void;
const at =
  (type: string, when: 'before' | 'after'): Death =>
  (it) =>
    it.log.onNext(type, dies(when));
const inSettle =
  (moved: boolean): Death =>
  (it) =>
    it.payments.scriptSettle((payment) => {
      if (moved) it.payments.move(payment);
      throw new Crash();
    });
const inSend: Death = (it) => diesInSend(it);

/** The client repeats the same payment until it has its answer, waiting out every 409 and 503. */
async function persist(it: World, patience = 6) {
  for (let i = 0; i < patience; i++) {
    const answer = await execute(it).catch((error: unknown) => {
      assert.ok(error instanceof Fault && error.code === 'payment_unconfirmed');
      return null;
    });
    if (answer !== null && answer.kind !== 'refused') return answer;
    if (answer !== null) assert.equal(answer.refusal.refused, 'idempotency_in_progress');
    it.clock.advance(45_000);
  }
  return null;
}

async function dying(death: Death, { together = false } = {}) {
  const common = shared({ together });
  const first = world(common);
  death(first);
  await assert.rejects(execute(first), Crash);
  const later = world(common);
  return { first, later, sent: () => first.outbound.sent.length + later.outbound.sent.length };
}

/** Every job that the log speaks of: whatever dies and resumes stays one job. */
const jobsIn = ({ log }: Pick<World, 'log'>) => [
  ...new Set(log.events.map(({ data }) => String(data.jobId))),
];

for (const [why, death] of [
  ['before PaymentReserved', at('PaymentReserved', 'before')],
  ['after PaymentReserved', at('PaymentReserved', 'after')],
  ['before IdempotencyKeyClaimed', at('IdempotencyKeyClaimed', 'before')],
  ['after IdempotencyKeyClaimed', at('IdempotencyKeyClaimed', 'after')],
  ['in the settle call, before the money moved', inSettle(false)],
  ['in the settle call, after the money moved', inSettle(true)],
  ['before PaymentSettled', at('PaymentSettled', 'before')],
  ['after PaymentSettled', at('PaymentSettled', 'after')],
  ['before JobStarted', at('JobStarted', 'before')],
] as const)
  for (const together of [false, true])
    test(`died ${why}${together ? ', settlement and start stored together' : ''}: the same payment executes once, charged once, with a receipt`, async () => {
      // Together with its start, no settlement is stored alone.
      if (together && why === 'after PaymentSettled') return;
      const { later, sent } = await dying(death, { together });
      const answer = await persist(later);
      assert.ok(answer?.kind === 'ran');
      const jobId = answer.execution.job.id;
      assert.deepEqual(jobsIn(later), [jobId]);
      assert.equal(sent(), 1);
      assert.equal(later.payments.ledger.size, 1);
      assert.equal((await audited(later, jobId)).ok, true);
      assert.equal((await persist(later))?.kind, 'replayed');
      assert.equal(sent(), 1);
    });

for (const [why, death, calls] of [
  ['after JobStarted', at('JobStarted', 'after'), 0],
  ['during the call', inSend, 1],
  ['before the closing append', at('ReceiptSigned', 'before'), 1],
] as const)
  for (const together of [false, true])
    test(`died ${why}${together ? ', settlement and start stored together' : ''}: never sent again; closed interrupted_unknown with a receipt, then replayed`, async () => {
      const { later, sent } = await dying(death, { together });
      assert.equal(await persist(later), null, 'in progress until somebody closes it');
      const recovery = jobRecovery({ ...later.deps, candidates: async () => jobsIn(later) });
      await recovery.sweep();
      later.clock.advance(10 * 60_000);
      assert.deepEqual(await recovery.sweep(), jobsIn(later));
      const answer = await persist(later);
      assert.ok(answer?.kind === 'replayed');
      assert.equal(answer.execution.job.errorCategory, 'interrupted_unknown');
      assert.equal(sent(), calls);
      assert.equal(later.payments.ledger.size, 1);
      assert.equal((await audited(later, jobsIn(later)[0])).ok, true);
    });

test('died after the closing append: the stored result is replayed', async () => {
  const { later, sent } = await dying(at('ReceiptSigned', 'after'));
  const answer = await letPass(later.clock, persist(later));
  assert.ok(answer?.kind === 'replayed');
  assert.equal(answer.execution.job.status, 'succeeded');
  assert.equal(sent(), 1);
});
