import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaseMs } from '#src/domain/job/commands.ts';
import { TIMES } from '#src/domain/limits.ts';
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { DEMO, execute } from '#test/support/given/given-call.ts';
import { attemptRetried, JOB_ID, jobStarted, OTHER_JOB_ID } from '#test/support/given/given-events.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import { afterOthers, gate } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import {
  audited,
  given,
  jobPlan,
  runJob,
  type Shared,
  shared,
  typesIn,
  type World,
  world,
} from '#test/support/world/fakes-world.ts';

const STREAM = `job-${JOB_ID}`;
const LEASE = leaseMs(1, 12_000);
const WATCH = LEASE + TIMES.recoveryGraceMs;
const CLOSING = ['AttemptMade', 'JobCompleted', 'ReceiptSigned'];

function recoverer(common: Shared, candidates: readonly string[] = [JOB_ID]) {
  const it = world(common);
  return { ...it, recovery: jobRecovery({ ...it.deps, candidates: async () => candidates }) };
}
/** A job whose process is gone. */
async function orphan(common = shared(), jobId = JOB_ID) {
  await given(common, `job-${jobId}`, jobStarted({ jobId, owner: 'gone', leaseMs: LEASE }));
  return common;
}
const receipts = (it: Pick<World, 'log'>) =>
  it.log.events.filter(({ type }) => type === 'ReceiptSigned').length;

test('a job is closed after its lease and a grace of watching, once, with a receipt, and nothing is sent', async () => {
  const it = recoverer(await orphan());
  assert.deepEqual(await it.recovery.sweep(), [], 'first sight');
  it.clock.advance(WATCH - 1);
  assert.deepEqual(await it.recovery.sweep(), []);
  it.clock.advance(1);
  assert.deepEqual(await it.recovery.sweep(), [JOB_ID]);
  assert.deepEqual(await it.recovery.sweep(), []);
  assert.deepEqual(await typesIn(it, STREAM), ['JobStarted', ...CLOSING]);
  const [, attempt, completed] = await it.log.readStream(STREAM);
  assert.deepEqual([attempt?.data.sent, attempt?.data.errorCategory], ['maybe', 'interrupted_unknown']);
  assert.deepEqual([completed?.data.status, completed?.data.closedBy], ['failed', 'recovery']);
  assert.equal((await audited(it)).ok, true);
  assert.equal(it.outbound.sent.length, 0);
});

test('leases are watched, not compared: a recoverer whose clock is an hour, or a year, ahead closes nothing live', async () => {
  for (const ahead of [3_600_000, 365 * 86_400_000]) {
    const it = recoverer(await orphan());
    it.clock.skew(ahead);
    assert.deepEqual(await it.recovery.sweep(), []);
    it.clock.skew(ahead);
    it.clock.advance(WATCH - 1);
    assert.deepEqual(await it.recovery.sweep(), []);
  }
});

test('the watch starts again after each change of the stream', async () => {
  const common = await orphan();
  const it = recoverer(common);
  await it.recovery.sweep();
  it.clock.advance(WATCH - 1);
  await given(common, STREAM, attemptRetried());
  assert.deepEqual(await it.recovery.sweep(), []);
  it.clock.advance(WATCH - 1);
  assert.deepEqual(await it.recovery.sweep(), []);
  it.clock.advance(1);
  assert.deepEqual(await it.recovery.sweep(), [JOB_ID]);
  assert.deepEqual(await typesIn(it, STREAM), ['JobStarted', 'AttemptMade', ...CLOSING]);
});

test('the watch starts again after the log was unavailable', async () => {
  const it = recoverer(await orphan());
  await it.recovery.sweep();
  it.log.setAway(true);
  it.clock.advance(WATCH);
  await assert.rejects(it.recovery.sweep(), EventLogUnavailable);
  it.log.setAway(false);
  assert.deepEqual(await it.recovery.sweep(), []);
  it.clock.advance(WATCH - 1);
  assert.deepEqual(await it.recovery.sweep(), []);
  it.clock.advance(1);
  assert.deepEqual(await it.recovery.sweep(), [JOB_ID]);
});

test('the watch starts again for a job that was no candidate meanwhile', async () => {
  const common = await orphan();
  const candidates = [JOB_ID];
  const it = recoverer(common, candidates);
  await it.recovery.sweep();
  candidates.length = 0;
  await it.recovery.sweep();
  it.clock.advance(WATCH);
  candidates.push(JOB_ID);
  assert.deepEqual(await it.recovery.sweep(), []);
});

test('exclusive: jobs of other owners are closed at once, our own live ones never', async () => {
  const common = await orphan();
  const it = recoverer(common, [JOB_ID, OTHER_JOB_ID]);
  await given(
    common,
    `job-${OTHER_JOB_ID}`,
    jobStarted({ jobId: OTHER_JOB_ID, owner: it.owner, leaseMs: LEASE }),
  );
  assert.deepEqual(await it.recovery.sweep({ exclusive: true }), [JOB_ID]);
  assert.deepEqual(await typesIn(it, `job-${OTHER_JOB_ID}`), ['JobStarted']);
});

test('candidates are only candidates: a job that is absent or completed is left alone', async () => {
  const common = await orphan();
  await recoverer(common).recovery.sweep({ exclusive: true });
  const it = recoverer(common, [JOB_ID, OTHER_JOB_ID]);
  const before = common.log.events.length;
  assert.deepEqual(await it.recovery.sweep({ exclusive: true }), []);
  assert.equal(common.log.events.length, before);
});

test('the owner writes just before the closing append: the recoverer closes nothing, and continues with the next job', async () => {
  const common = await orphan();
  await orphan(common, OTHER_JOB_ID);
  const it = recoverer(common, [JOB_ID, OTHER_JOB_ID]);
  common.log.onNext(
    'ReceiptSigned',
    afterOthers(() => given(common, STREAM, attemptRetried())),
  );
  assert.deepEqual(await it.recovery.sweep({ exclusive: true }), [OTHER_JOB_ID]);
  assert.deepEqual(await typesIn(it, STREAM), ['JobStarted', 'AttemptMade']);
});

test('the owner completes just before the closing append: its result stands, and no interruption is reported', async () => {
  const common = shared();
  const owner = world(common);
  const { frozen, reached, open } = gate();
  common.log.onNext('ReceiptSigned', frozen);
  const running = runJob(owner.deps, jobPlan(owner));
  await reached;
  const other = recoverer(common);
  common.log.onNext(
    'ReceiptSigned',
    afterOthers(async () => {
      open();
      await letPass(owner.clock, running);
    }),
  );
  assert.deepEqual(await other.recovery.sweep({ exclusive: true }), []);
  assert.equal(receipts(other), 1);
  assert.equal((await running)?.job.completed.status, 'succeeded');
  assert.equal((await audited(other)).ok, true);
});

test('a slow append of one job delays no other', { timeout: 60_000 }, async () => {
  const it = recoverer(await orphan(await orphan(), OTHER_JOB_ID), [JOB_ID, OTHER_JOB_ID]);
  const { frozen, reached, open } = gate();
  it.log.onNext('ReceiptSigned', frozen);
  const sweeping = it.recovery.sweep({ exclusive: true });
  await reached;
  while (receipts(it) === 0) await quiet();
  open();
  assert.deepEqual([...(await sweeping)].sort(), [JOB_ID, OTHER_JOB_ID]);
  assert.equal(receipts(it), 2);
});

test('the log goes away in the middle of a sweep: the sweep ends at once, and a later one closes the job, once', async () => {
  const it = recoverer(await orphan());
  it.log.onNext('ReceiptSigned', async () => {
    it.log.setAway(true);
    throw new EventLogUnavailable();
  });
  await assert.rejects(it.recovery.sweep({ exclusive: true }), EventLogUnavailable);
  it.log.setAway(false);
  assert.deepEqual(await it.recovery.sweep({ exclusive: true }), [JOB_ID]);
  assert.equal(receipts(it), 1);
});

test('the answer of the closing append is lost: the job is closed, and no second receipt is signed', async () => {
  const it = recoverer(await orphan());
  it.log.onNext('ReceiptSigned', async (store) => {
    await store();
    throw new EventLogUnavailable();
  });
  await assert.rejects(it.recovery.sweep({ exclusive: true }), EventLogUnavailable);
  assert.deepEqual(await it.recovery.sweep({ exclusive: true }), []);
  assert.equal(receipts(it), 1);
});

test('a process that ends looks at no further candidate', async () => {
  const common = await orphan(await orphan(), OTHER_JOB_ID);
  const ending = new AbortController();
  const it = world(common);
  const read: string[] = [];
  const readStream: typeof it.log.readStream = (stream, options) => {
    read.push(stream);
    ending.abort();
    return it.log.readStream(stream, options);
  };
  const recovery = jobRecovery({
    ...it.deps,
    log: { ...it.log, readStream },
    ending: ending.signal,
    candidates: async () => [JOB_ID, OTHER_JOB_ID],
  });
  assert.deepEqual(await recovery.sweep(), []);
  assert.deepEqual(read, [STREAM]);
});

// ── jobs that cannot be closed, and rows that are unavailable ───────────────────────────────────────────

const UNREADABLE = 'job_unreadable';

/** A recoverer whose reads of streams are counted. */
function counting(it: World, candidates: () => Promise<readonly string[]>) {
  let reads = 0;
  const readStream: typeof it.log.readStream = (...given) => {
    reads++;
    return it.log.readStream(...given);
  };
  const recovery = jobRecovery({ ...it.deps, log: { ...it.log, readStream }, candidates });
  return { ...it, recovery, reads: () => reads };
}

async function unreadable(common: Shared, jobId: string) {
  const odd = { id: crypto.randomUUID(), type: 'JobStarted', data: { v: 2 }, metadata: {} };
  await common.log.append(`job-${jobId}`, 'no_stream', [odd]);
}

test('jobs that cannot be closed are tried less and less often, logged once a cause, and counted', async () => {
  const common = await orphan();
  const candidates = [UNREADABLE, `${UNREADABLE}2`];
  for (const jobId of candidates) await unreadable(common, jobId);
  const it = counting(world(common), async () => candidates);
  const triesAt: number[] = [];
  for (let second = 0; second < 1200; second += 5) {
    const before = it.reads();
    await it.recovery.sweep();
    if (it.reads() > before) triesAt.push(second);
    it.clock.advance(5000);
  }
  assert.deepEqual(triesAt, [0, 5, 15, 35, 75, 155, 315, 615, 915]);
  assert.equal(it.recovery.unclosable(), 2);
  assert.deepEqual(
    it.logger.lines.map(({ level, message }) => [level, message]),
    [['bug', 'an interrupted job could not be closed; recovery repeats, at least every 5 minutes']],
  );
  candidates.length = 0;
  await it.recovery.sweep();
  assert.equal(it.recovery.unclosable(), 0);
});

for (const [what, spoil, cause] of [
  [
    'a damaged event',
    async (common: Shared) => {
      await orphan(common, 'spoilt');
      common.log.spoil((await common.log.readStream('job-spoilt'))[0] ?? assert.fail());
    },
    /revision 0 of stream job-/,
  ],
  [
    'an event of a newer release',
    (common: Shared) =>
      common.log.append('job-spoilt', 'no_stream', [newEvent({ type: 'JobStarted', data: { v: 99 } })]),
    /newer release: JobStarted version 99/,
  ],
] as const)
  test(`${what} keeps its own job open, named in the log, and no other`, async () => {
    const common = await orphan();
    await spoil(common);
    const it = recoverer(common, ['spoilt', JOB_ID]);
    await it.recovery.sweep();
    it.clock.advance(WATCH);
    assert.deepEqual(await it.recovery.sweep(), [JOB_ID]);
    assert.equal(it.recovery.unclosable(), 1);
    const [{ level, fields } = assert.fail()] = it.logger.lines.filter(({ level }) => level !== 'warn');
    assert.deepEqual([level, String(Object(fields).jobId)], ['error', 'spoilt']);
    assert.match(String(Object(fields).cause), cause);
    assert.equal(common.log.events.filter(({ stream }) => stream === 'job-spoilt').length, 1);
  });

test('a job that a caller has found running is closed after its lease although the rows are unavailable', async () => {
  const rows = new Fault('read_models_unavailable', 'no rows');
  const it = counting(world(await orphan()), () => Promise.reject(rows));
  const { recovery } = it;
  await assert.rejects(recovery.sweep(), rows);
  it.clock.advance(WATCH);
  recovery.foundRunning(JOB_ID);
  for (let ms = 0; ms < WATCH; ms += 5000) {
    await assert.rejects(recovery.sweep(), rows);
    assert.deepEqual(await typesIn(it, STREAM), ['JobStarted'], `after ${ms} ms`);
    it.clock.advance(5000);
  }
  await assert.rejects(recovery.sweep(), rows);
  assert.deepEqual(await typesIn(it, STREAM), ['JobStarted', ...CLOSING]);
  const reads = it.reads();
  await assert.rejects(recovery.sweep(), rows);
  assert.equal(it.reads(), reads, 'it is no candidate any more');
});

test('a lock proves it dead: a job that a caller has found is closed at the next sweep, before the rows are complete', async () => {
  const it = world(await orphan());
  const recovery = jobRecovery({
    ...it.deps,
    candidates: () => Promise.reject(new Fault('read_models_unavailable', 'still replaying')),
  });
  recovery.foundRunning(JOB_ID);
  await assert.rejects(recovery.sweep({ exclusive: true }));
  assert.deepEqual(await typesIn(it, STREAM), ['JobStarted', ...CLOSING]);
});

test('found jobs are bounded: beyond 1000 the oldest are forgotten', async () => {
  const it = counting(world(), async () => []);
  for (let n = 0; n < 3000; n++) it.recovery.foundRunning(`job_${n}`);
  await it.recovery.sweep();
  assert.equal(it.reads(), 1000);
});

test('while the rows are unavailable, the process that gets a repeat closes the job of a dead owner, and replays it', async () => {
  const common = shared();
  const dead = world(common);
  dead.outbound.script(() => new Promise(() => undefined));
  void execute(dead, DEMO);
  await quiet();
  const it = world(common);
  const recovery = jobRecovery({
    ...it.deps,
    candidates: () => Promise.reject(new Fault('read_models_unavailable', 'no rows')),
  });
  const deps = { ...it.deps, foundRunning: recovery.foundRunning };
  const repeat = () => letPass(it.clock, execute({ deps }, DEMO));
  const first = await repeat();
  assert.equal(first.kind === 'refused' && first.refusal.refused, 'idempotency_in_progress');
  for (let ms = 0; ms <= WATCH; ms += 5000) {
    await recovery.sweep().catch(() => undefined);
    it.clock.advance(5000);
  }
  await recovery.sweep().catch(() => undefined);
  const again = await repeat();
  assert.ok(again.kind === 'replayed', again.kind);
  assert.deepEqual(
    [again.execution.job.status, again.execution.job.errorCategory],
    ['failed', 'interrupted_unknown'],
  );
  assert.equal(it.outbound.sent.length, 0);
});
