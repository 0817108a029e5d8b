import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { boughtNothing } from '#src/domain/payment/ledger.ts';
import { parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { OutboundDefect } from '#src/ports/outbound.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import { JOB_ID, jobStarted } from '#test/support/given/given-events.ts';
import { afterOthers, gate, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { failing, letPass, quiet, succeeding } from '#test/support/world/fakes.ts';
import {
  audited,
  given,
  type JobPlan,
  jobPlan,
  runJob,
  type World,
  world,
} from '#test/support/world/fakes-world.ts';

const STREAM = `job-${JOB_ID}`;
const CLOSING = 'AttemptMade+JobCompleted+ReceiptSigned';

const receiptsIn = ({ log }: World) => log.events.filter(({ type }) => type === 'ReceiptSigned');
const closeByRecovery = async (it: World) => {
  const other = world(it.common);
  const recovery = jobRecovery({ ...other.deps, candidates: async () => [JOB_ID] });
  return recovery.sweep({ exclusive: true });
};
async function storedJob(it: World) {
  const { state } = await load(it, JOB, JOB_ID);
  assert.ok(state.status === 'completed');
  return state;
}

test('one attempt without a key: exactly two appends, and a receipt that verifies in every check', async () => {
  const it = world();
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it)));
  assert.deepEqual(it.trace, ['JobStarted', 'send', CLOSING]);
  assert.equal(it.log.appends, 2);
  assert.deepEqual(ran?.job, await storedJob(it));
  const report = await audited(it);
  assert.deepEqual(
    report.checks.filter(({ ok }) => !ok),
    [],
  );
  assert.equal(report.ok, true);
});

test('every disclosure of a run is in the receipt, and the receipt holds no commitment that no one can open', async () => {
  const it = world();
  it.outbound.script(failing({ address: '203.0.113.8' }), succeeding());
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it, { attemptsAllowed: 2 })));
  const payload = parseJws(ran?.job.receipt?.jws ?? '')?.payload as ReceiptPayload;
  const seen = [...payload.attempts.flatMap(({ _sd }) => _sd), ...payload.outcome._sd];
  const opened =
    ran?.disclosures.map(({ text }) => createHash('sha256').update(text).digest('base64url')) ?? [];
  assert.equal(opened.length, 5);
  assert.deepEqual([...opened].sort(), [...seen].sort());
  const values = ran?.disclosures.map(({ text }) =>
    JSON.parse(Buffer.from(text, 'base64url').toString()).slice(1),
  );
  assert.deepEqual(values, [
    ['attempt_1_leaf_sha256', 'a'.repeat(64)],
    ['attempt_1_address', '203.0.113.8'],
    ['attempt_2_leaf_sha256', 'a'.repeat(64)],
    ['attempt_2_address', '203.0.113.7'],
    ['response_body_sha256', 'b'.repeat(64)],
  ]);
});

test('a retry is announced, and the announcement acknowledged, before the next attempt is sent', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('AttemptMade', frozen);
  it.outbound.script(failing({ retryAfterMs: 700 }), failing(), succeeding());
  const running = runJob(it.deps, jobPlan(it, { attemptsAllowed: 3 }));
  await reached;
  await quiet();
  assert.deepEqual(it.trace, ['JobStarted', 'send']);
  open();
  const ran = await letPass(it.clock, running);
  assert.deepEqual(it.trace, ['JobStarted', 'send', 'AttemptMade', 'send', 'AttemptMade', 'send', CLOSING]);
  assert.equal(it.clock.slept[0], 700, 'the target said when');
  assert.deepEqual([ran?.job.completed.status, ran?.job.completed.attempts], ['succeeded', 3]);
  assert.equal((await audited(it)).ok, true);
});

test('the last allowed attempt failed: the job failed with it, and nothing more is sent', async () => {
  const it = world();
  it.outbound.script(failing(), failing({ status: 500 }), succeeding());
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it, { attemptsAllowed: 2 })));
  assert.equal(it.outbound.sent.length, 2);
  const { status, responseStatus, errorCategory, closedBy } = ran?.job.completed ?? {};
  assert.deepEqual(
    [status, responseStatus, errorCategory, closedBy],
    ['failed', 500, 'target_server_error', 'owner'],
  );
});

test('each attempt has a newly made request', async () => {
  const it = world();
  it.outbound.script(failing());
  let made = 0;
  const plan = jobPlan(it, { attemptsAllowed: 2 });
  const request = async () => ({ ...(await plan.request()), headers: [['x-made', String(++made)]] as const });
  await letPass(it.clock, runJob(it.deps, { ...plan, request }));
  assert.deepEqual(
    it.outbound.sent.map(({ headers }) => headers),
    [[['x-made', '1']], [['x-made', '2']]],
  );
});

test('a job that another started first is not run: null, and nothing is sent', async () => {
  const it = world();
  await given(it, STREAM, jobStarted({ owner: 'another' }));
  assert.equal(await letPass(it.clock, runJob(it.deps, jobPlan(it))), null);
  assert.equal(it.outbound.sent.length, 0);
});

test('nothing is sent before JobStarted is acknowledged', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('JobStarted', frozen);
  const running = runJob(it.deps, jobPlan(it));
  await reached;
  await quiet();
  assert.equal(it.outbound.sent.length, 0);
  open();
  await letPass(it.clock, running);
  assert.equal(it.outbound.sent.length, 1);
});

for (const [why, fault] of [
  ["JobStarted's answer is lost", lostAnswer],
  ['JobStarted did not reach the log', unavailable],
] as const) {
  test(`${why}: repeated with the same ids until known, one job, one call`, async () => {
    const it = world();
    for (let i = 0; i < 3; i++) it.log.onNext('JobStarted', fault);
    await letPass(it.clock, runJob(it.deps, jobPlan(it)));
    assert.deepEqual(it.log.stored, ['JobStarted', CLOSING]);
    assert.deepEqual(it.clock.slept, [100, 200, 400]);
    assert.equal(it.outbound.sent.length, 1);
    assert.equal((await audited(it)).ok, true);
  });
}

async function startKnownAfter(share: (leaseMs: number) => number) {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('JobStarted', frozen);
  const running = runJob(it.deps, jobPlan(it));
  await reached;
  it.clock.advance(share(12_000 + 15_000));
  open();
  return { it, ran: await letPass(it.clock, running) };
}

test('JobStarted acknowledged after the lease: closed not_executed with a receipt, and nothing is sent', async () => {
  const { it, ran } = await startKnownAfter((lease) => lease);
  assert.equal(it.outbound.sent.length, 0);
  const { completed, attempts } = ran?.job ?? {};
  assert.deepEqual(
    [completed?.status, completed?.errorCategory, completed?.closedBy],
    ['failed', 'not_executed', 'owner'],
  );
  assert.deepEqual(
    attempts?.map(({ sent, errorCategory }) => [sent, errorCategory]),
    [['no', 'not_executed']],
  );
  assert.deepEqual(ran?.disclosures, []);
  assert.equal((await audited(it)).ok, true);
});

const BUG = new TypeError('a bug');
const throwing =
  (thrown: unknown) =>
  (plan: JobPlan, it: World): JobPlan => {
    it.outbound.script(() => {
      throw thrown;
    });
    return plan;
  };
/** The attempt has ended; the dice are thrown for its retry. */
const brokenDice = (plan: JobPlan, it: World): JobPlan => {
  it.deps.entropy.fraction = () => {
    throw BUG;
  };
  return plan;
};
const unbuilt = (plan: JobPlan): JobPlan => ({ ...plan, request: () => Promise.reject(BUG) });
for (const [when, spoil, category, sent, calls] of [
  [
    'in the outbound call before anything was sent',
    throwing(new OutboundDefect('no', BUG)),
    'not_executed',
    'no',
    1,
  ],
  [
    'in the outbound call after the request was written',
    throwing(new OutboundDefect('yes', BUG)),
    'interrupted_unknown',
    'maybe',
    1,
  ],
  ['in the outbound call that names no state', throwing(BUG), 'interrupted_unknown', 'maybe', 1],
  ['while the request is built', unbuilt, 'not_executed', 'no', 0],
  ['while its outcome is recorded', brokenDice, 'interrupted_unknown', 'maybe', 1],
] as const) {
  test(`a defect ${when}: logged, closed ${category} with a receipt, not repeated, refundable`, async () => {
    const it = world();
    const ran = await letPass(it.clock, runJob(it.deps, spoil(jobPlan(it, { attemptsAllowed: 3 }), it)));
    const { completed, attempts } = ran?.job ?? {};
    assert.deepEqual([completed?.errorCategory, completed?.closedBy], [category, 'owner']);
    assert.equal(boughtNothing(category), true);
    assert.deepEqual(
      attempts?.map((attempt) => [attempt.sent, attempt.errorCategory]),
      [[sent, category]],
    );
    assert.equal(it.outbound.sent.length, calls);
    assert.equal((await audited(it)).ok, true);
    const [line = assert.fail(), ...more] = it.logger.lines;
    assert.deepEqual([line.level, more], ['bug', []]);
    const { jobId, cause } = line.fields as { jobId: string; cause: Error };
    assert.deepEqual([jobId, cause], [JOB_ID, BUG]);
  });
}

test('JobStarted acknowledged within the lease: the job runs', async () => {
  const { it, ran } = await startKnownAfter((lease) => lease - 1);
  assert.equal(it.outbound.sent.length, 1);
  assert.equal(ran?.job.completed.status, 'succeeded');
});

test('the announcement of a retry conflicts: nothing more is sent, the stored receipt is the answer', async () => {
  const it = world();
  it.log.onNext(
    'AttemptMade',
    afterOthers(() => closeByRecovery(it)),
  );
  it.outbound.script(failing());
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it, { attemptsAllowed: 3 })));
  assert.equal(it.outbound.sent.length, 1);
  assert.equal(receiptsIn(it).length, 1);
  assert.deepEqual(ran?.job, await storedJob(it));
  assert.deepEqual([ran?.job.completed.errorCategory, ran?.disclosures], ['interrupted_unknown', []]);
});

test('the announcement of a retry is known only after the lease: closed not_executed, nothing more is sent', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('AttemptMade', frozen);
  it.outbound.script(failing());
  const running = runJob(it.deps, jobPlan(it, { attemptsAllowed: 2 }));
  await reached;
  it.clock.advance(61_000);
  open();
  const ran = await letPass(it.clock, running);
  assert.equal(it.outbound.sent.length, 1);
  assert.deepEqual(
    ran?.job.attempts.map(({ sent, errorCategory }) => [sent, errorCategory]),
    [
      ['yes', 'target_server_error'],
      ['no', 'not_executed'],
    ],
  );
  assert.equal((await audited(it)).ok, true);
});

for (const closer of ['no one', 'a recoverer'] as const) {
  test(`the owner slept through its lease between two attempts, and ${closer} closed the job: nothing more is sent`, async () => {
    const it = world();
    it.outbound.script(failing({ retryAfterMs: 1000 }));
    const running = runJob(it.deps, jobPlan(it, { attemptsAllowed: 2 }));
    while (it.clock.slept.length === 0) await quiet();
    if (closer === 'a recoverer') await closeByRecovery(it);
    it.clock.advance(10 * 60_000);
    const ran = await letPass(it.clock, running);
    assert.equal(it.outbound.sent.length, 1);
    assert.equal(receiptsIn(it).length, 1);
    const expected = closer === 'no one' ? ['not_executed', 'owner'] : ['interrupted_unknown', 'recovery'];
    assert.deepEqual([ran?.job.completed.errorCategory, ran?.job.completed.closedBy], expected);
  });
}

test('the log goes away after dispatch: the outcome is kept, the append repeated, nothing sent again', async () => {
  const it = world();
  it.outbound.script(() => {
    it.log.setAway(true);
    return succeeding({ status: 201 });
  });
  const running = runJob(it.deps, jobPlan(it));
  for (let waited = 0; waited < 300_000; waited += 2000) {
    await quiet();
    it.clock.advance(2000);
  }
  it.log.setAway(false);
  const ran = await letPass(it.clock, running);
  assert.equal(it.outbound.sent.length, 1);
  assert.deepEqual([ran?.job.completed.status, ran?.job.completed.responseStatus], ['succeeded', 201]);
  assert.equal(Math.max(...it.clock.slept), 2000, 'it asks at least every two seconds');
  assert.equal((await audited(it)).ok, true);
});

test("the closing append's answer is lost: one receipt, and it is the one that is answered", async () => {
  const it = world();
  it.log.onNext('ReceiptSigned', lostAnswer);
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it)));
  assert.equal(receiptsIn(it).length, 1);
  assert.deepEqual(ran?.job, await storedJob(it));
});

test('nothing signed leaves before the append that holds it is acknowledged', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('ReceiptSigned', frozen);
  let left = false;
  const running = runJob(it.deps, jobPlan(it)).finally(() => {
    left = true;
  });
  await reached;
  it.clock.advance(5000);
  await quiet();
  assert.equal(left, false);
  open();
  assert.notEqual((await letPass(it.clock, running))?.job.receipt, null);
});

test('the loser of the closing append answers the stored receipt, and opens nothing that is not in it', async () => {
  const it = world();
  it.log.onNext(
    'ReceiptSigned',
    afterOthers(() => closeByRecovery(it)),
  );
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it)));
  assert.equal(receiptsIn(it).length, 1);
  assert.deepEqual(ran?.job, await storedJob(it));
  assert.deepEqual([ran?.job.completed.closedBy, ran?.disclosures], ['recovery', []]);
});

test('whatever failed before an answer came is recorded as it was, without a response', async () => {
  const it = world();
  const nothing = {
    status: null,
    tlsVersion: null,
    leafSha256: null,
    responseBytes: null,
    responseBodySha256: null,
  };
  it.outbound.script(
    failing({ ...nothing, phase: 'connect', sent: 'no', errorCategory: 'connect_error', exempted: true }),
  );
  const ran = await letPass(it.clock, runJob(it.deps, jobPlan(it)));
  const [attempt] = ran?.job.attempts ?? [];
  assert.deepEqual(
    [attempt?.phase, attempt?.sent, attempt?.leafCommitment, attempt?.exempted],
    ['connect', 'no', null, true],
  );
  assert.notEqual(attempt?.addressCommitment, null);
  const { responseBytes, responseCommitment, responseStatus } = ran?.job.completed ?? {};
  assert.deepEqual([responseBytes, responseCommitment, responseStatus], [null, null, null]);
  assert.equal((await audited(it)).ok, true);
});

test('causes are recorded: each event names the one before it, and all name the job', async () => {
  const it = world();
  it.outbound.script(failing());
  await letPass(it.clock, runJob(it.deps, jobPlan(it, { attemptsAllowed: 2 })));
  const causes = it.log.events.map(({ metadata }) => metadata.$causationId);
  assert.deepEqual(causes, [JOB_ID, ...it.log.events.slice(0, -1).map(({ id }) => id)]);
  assert.deepEqual(new Set(it.log.events.map(({ metadata }) => metadata.$correlationId)), new Set([JOB_ID]));
});
