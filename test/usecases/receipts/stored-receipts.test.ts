// A stored receipt verified with what the log holds, on jobs that were really executed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { Fault, refused } from '#src/domain/refusal.ts';
import { parseNote } from '#src/domain/transparency/note.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { parseWitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import {
  type StoredJob,
  storedReceiptVerifier,
  upToCompletion,
  type VerifyDeps,
  verifyStored,
} from '#src/usecases/receipts/stored-receipts.ts';
import { keyDirectory, loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';
import { type CallChanges, execute } from '#test/support/given/given-call.ts';
import { keyActivated } from '#test/support/given/given-events.ts';
import { rowOfJob } from '#test/support/given/given-receipt.ts';
import { primitives, sha256 } from '#test/support/given/primitives.ts';
import { publicLog } from '#test/support/log/public-log.ts';
import { ORIGIN, smallLog } from '#test/support/log/small-log.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { failing, letPass } from '#test/support/world/fakes.ts';
import { given, shared, type World, world } from '#test/support/world/fakes-world.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const PROMISE = { origin: ORIGIN, mmdSeconds: 1800 };

/** An executed job as the read models have it, in a log that knows the key. */
async function stored(changes: CallChanges = {}, it = world(shared(), { receiptLog: () => PROMISE })) {
  if ((await it.log.readStream('keys-relay')).length === 0) {
    await given(it, 'keys-relay', keyActivated({ keyId: it.key.keyId, x: it.key.x }));
  }
  it.outbound.script(failing());
  const answer = await letPass(it.clock, execute(it, { request: { retry: { attempts: 2 } }, ...changes }));
  assert.ok(answer.kind === 'ran');
  const { id: jobId } = answer.execution.job;
  const { state } = await load(it, JOB, jobId);
  assert.ok(state.status === 'completed' && state.receipt !== null);
  const { receipt } = state;
  const job: StoredJob = rowOfJob(state);
  const keys = keyDirectory(it.deps, (await loadKeyRing(it.deps)).keys);
  return {
    it,
    job,
    receipt: { id: receipt.receiptId, jobId, jws: receipt.jws },
    deps: {
      log: it.log,
      keys,
      primitives,
      transparency: noTransparency,
      clock: it.clock,
      reachedHead: async () => true,
    },
  };
}

const failed = ({ checks }: Awaited<ReturnType<typeof verifyStored>>) =>
  checks.filter(({ ok }) => !ok).map(({ name }) => name);

test('a retained job verifies in all 17 checks, its chain rebuilt from the log', async () => {
  const { deps, job, receipt } = await stored();
  const report = await verifyStored(deps, receipt, job);
  assert.deepEqual([report.ok, report.signatureVerified, failed(report)], [true, true, []]);
  assert.equal(report.checks.length, 17);
  assert.deepEqual([report.jobId, report.receiptId], [job.jobId, receipt.id]);
});

test('a job that is no longer retained: the seven checks of the receipt alone, without reading its stream', async () => {
  const { deps, receipt } = await stored();
  const log = { ...deps.log, readStream: () => Promise.reject(new Error('read')) };
  await deps.keys.list();
  const report = await verifyStored({ ...deps, log }, receipt, null);
  assert.deepEqual([report.ok, report.checks.length], [true, 7]);
});

test('a read model that says another thing than the receipt fails its check, and nothing else', async () => {
  const { deps, job, receipt } = await stored();
  assert.deepEqual(failed(await verifyStored(deps, receipt, { ...job, payment: null })), ['payment_matches']);
});

test('a log whose events were edited: event_chain_matches fails', async () => {
  const { deps, job, receipt } = await stored();
  const events = await deps.log.readStream(`job-${job.jobId}`);
  const edited = events.map((event) =>
    event.type === 'JobStarted' ? { ...event, data: { ...event.data, owner: 'other' } } : event,
  );
  const log = { ...deps.log, readStream: async () => edited };
  await deps.keys.list();
  assert.deepEqual(failed(await verifyStored({ ...deps, log }, receipt, job)), ['event_chain_matches']);
});

test('a key that the log does not know: signature_valid and key_valid_at_issue fail', async () => {
  const { deps, job, receipt } = await stored();
  const none = { list: () => [], refresh: async () => [] };
  const report = await verifyStored({ ...deps, keys: none }, receipt, job);
  assert.deepEqual(failed(report), ['signature_valid', 'key_valid_at_issue']);
});

test('the chain covers a job’s events up to and with JobCompleted', async () => {
  const { it, job } = await stored();
  const events = await it.log.readStream(`job-${job.jobId}`);
  const types = (list: readonly { readonly type: string }[]) => list.map(({ type }) => type);
  assert.deepEqual(types(upToCompletion(events)), [
    'JobStarted',
    'AttemptMade',
    'AttemptMade',
    'JobCompleted',
  ]);
  const running = events.slice(0, 2);
  assert.deepEqual(upToCompletion(running), running);
});

test('the log is unavailable: event_log_unavailable, the receipt is not reported as bad; no other fault has that code', async () => {
  const { it, deps, job, receipt } = await stored();
  await deps.keys.list();
  it.log.setAway(true);
  await assert.rejects(verifyStored(deps, receipt, job), (thrown: unknown) => {
    assert.ok(thrown instanceof Fault && thrown.cause instanceof EventLogUnavailable);
    assert.deepEqual([thrown.code, thrown.retryAfterSeconds], ['event_log_unavailable', 5]);
    return true;
  });
  assert.equal((await verifyStored(deps, receipt, null)).ok, true);
  const log = { ...deps.log, readStream: () => Promise.reject(new TypeError('of ours')) };
  await assert.rejects(verifyStored({ ...deps, log }, receipt, job), TypeError);
});

const DAY_SECONDS = 86_400;

/** A checkpoint of so many leaves. */
async function smallLogHead(size: number): Promise<string> {
  const log = smallLog();
  for (let n = 0; n < size; n++) await log.append(sha256(`${n}`));
  return log.checkpoint();
}

const COVERS_SOME = await smallLogHead(3);
const COVERS_NONE = await smallLogHead(0);

/** As the transparency log answers of a receipt: `prove` each time it is asked, the last for good. */
function logThatSays(it: World, ...answers: Awaited<ReturnType<Transparency['prove']>>[]) {
  const asked: string[] = [];
  const transparency: VerifyDeps['transparency'] = {
    latest: () => COVERS_SOME,
    newest: async () => COVERS_SOME,
    covering: async () => COVERS_SOME,
    async prove(receiptId) {
      asked.push(receiptId);
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? null;
    },
  };
  return { asked, transparency, later: (seconds: number) => it.clock.advance(seconds * 1000) };
}

const notReady = refused('receipt_not_ready', 'not yet');
const logCheckOf = ({ checks }: VerificationReport) => checks.find(({ name }) => name === 'receipt_logged');

/** A stored receipt in a transparency log of its own, its key announced. */
async function storedAndLogged() {
  const found = await stored();
  const { it, receipt } = found;
  const log = await publicLog(5);
  await log.add(receipt.id, receipt.jws);
  await log.add('rcpt_other', 'another');
  await log.signAt(7);
  const { keyId, x } = log.log.key;
  const announced = keyActivated({ keyId, x, purpose: 'checkpoint' });
  const announce = () => given(it, 'keys-relay', announced);
  return { ...found, log, announce };
}

test('once there is a transparency log: receipt_logged by the proof of this receipt, with and without its job', async () => {
  const { deps, job, receipt, log, announce } = await storedAndLogged();
  await announce();
  for (const [of, checks] of [
    [job, 18],
    [null, 8],
  ] as const) {
    const report = await verifyStored({ ...deps, transparency: log.asked }, receipt, of);
    assert.deepEqual([report.ok, report.checks.length], [true, checks]);
    assert.deepEqual(logCheckOf(report)?.details, { pending: false, origin: ORIGIN, index: 5, size: 7 });
  }
});

test('of a log with witnesses: receipt_witnessed is pending for ten minutes, then a quorum has to be in the proof', async () => {
  const { it, deps, job, receipt, log, announce } = await storedAndLogged();
  await announce();
  const [one, two] = ['w1', 'w2'].map(
    (name) => new C2spWitness({ name: `witness.example/${name}`, now: () => it.clock.now() }),
  );
  assert.ok(one !== undefined && two !== undefined);
  const { policy } = parseWitnessPolicy(
    `witness w1 ${one.vkey}\nwitness w2 ${two.vkey}\ngroup both all w1 w2\nquorum both\n`,
  );
  const proof = await log.asked.prove(receipt.id);
  assert.ok(typeof proof === 'string');
  const text = parseNote(parseTlogProof(proof)?.checkpoint ?? '')?.text ?? '';
  const judged = async (shown: string) => {
    const transparency = { ...log.asked, prove: async () => shown };
    const report = await verifyStored({ ...deps, transparency, policy }, receipt, job);
    const details = report.checks.find((check) => check.name === 'receipt_witnessed')?.details;
    assert.ok(details !== undefined && 'names' in details);
    return { failed: failed(report), pending: details.pending, names: details.names };
  };
  const young = await judged(proof + one.cosign(text));
  assert.deepEqual([young.failed, young.pending], [[], true]);
  it.clock.advance(601_000);
  assert.deepEqual((await judged(proof + one.cosign(text))).failed, ['receipt_witnessed']);
  const cosigned = await judged(proof + one.cosign(text) + two.cosign(text));
  assert.deepEqual(cosigned, { failed: [], pending: false, names: ['w1', 'w2'] });
});

test('a checkpoint by a key that was announced only just now: the keys are read again before anything is called bad', async () => {
  const { deps, receipt, log, announce } = await storedAndLogged();
  await deps.keys.list();
  await announce();
  assert.equal((await deps.keys.list()).length, 1, 'the list at hand is old');
  const report = await verifyStored({ ...deps, transparency: log.asked }, receipt, null);
  assert.deepEqual([report.ok, logCheckOf(report)?.ok], [true, true]);
});

test('a checkpoint by a key that was never announced: receipt_logged fails, and nothing else', async () => {
  const { deps, job, receipt, log } = await storedAndLogged();
  const report = await verifyStored({ ...deps, transparency: log.asked }, receipt, job);
  assert.deepEqual(failed(report), ['receipt_logged']);
});

test('a young receipt that is in no checkpoint yet is pending: asked once, without waiting for the rows', async () => {
  const { it, deps, receipt } = await stored();
  const { transparency, asked } = logThatSays(it, notReady);
  const reachedHead = () => Promise.reject(new Error('asked for the head'));
  const report = await verifyStored({ ...deps, transparency, reachedHead }, receipt, null);
  const dueBy = Math.floor(it.clock.now() / 1000) + PROMISE.mmdSeconds;
  assert.equal(report.ok, true);
  assert.deepEqual(logCheckOf(report)?.details, { pending: true, dueBy });
  assert.deepEqual(asked, [receipt.id]);
});

test('a late one, the rows at the head of the log: receipt_logged fails, whether the log has it or not', async () => {
  for (const answer of [notReady, refused('receipt_not_found', 'no leaf')]) {
    const { it, deps, receipt } = await stored();
    const { transparency, later } = logThatSays(it, answer);
    later(DAY_SECONDS);
    const report = await verifyStored({ ...deps, transparency }, receipt, null);
    assert.deepEqual(failed(report), ['receipt_logged']);
  }
});

test('one that promises nothing is waited for as long as any, and then late: leaving the promise out helps no relay', async () => {
  const { it, deps, receipt } = await stored({}, world());
  const { transparency, later } = logThatSays(it, notReady);
  const seen = async () => {
    const report = await verifyStored({ ...deps, transparency }, receipt, null);
    return [failed(report), logCheckOf(report)?.details];
  };
  const dueBy = Math.floor(it.clock.now() / 1000) + 3600;
  later(3600);
  assert.deepEqual(await seen(), [[], { pending: true, dueBy }]);
  later(1);
  assert.deepEqual(await seen(), [['receipt_logged'], { pending: false, dueBy }]);
});

test('a late one while the rows are behind the log: read_models_unavailable, it is not called late', async () => {
  const { it, deps, receipt } = await stored();
  const { transparency, later } = logThatSays(it, notReady);
  later(DAY_SECONDS);
  const behind = verifyStored({ ...deps, transparency, reachedHead: async () => false }, receipt, null);
  await assert.rejects(behind, (thrown: unknown) => {
    assert.ok(thrown instanceof Fault);
    assert.deepEqual([thrown.code, thrown.retryAfterSeconds], ['read_models_unavailable', 1]);
    return true;
  });
});

test('a late one whose checkpoint the rows have by the second look is logged', async () => {
  const { it, deps, receipt, log, announce } = await storedAndLogged();
  await announce();
  const proof = await log.asked.prove(receipt.id);
  const { transparency, later } = logThatSays(it, notReady, proof);
  later(DAY_SECONDS);
  const report = await verifyStored({ ...deps, transparency }, receipt, null);
  assert.deepEqual([report.ok, logCheckOf(report)?.ok], [true, true]);
});

test('rows that are behind do not hide another fault', async () => {
  const { it, deps, job, receipt } = await stored();
  const { transparency } = logThatSays(it, notReady);
  const report = await verifyStored({ ...deps, transparency, reachedHead: async () => false }, receipt, {
    ...job,
    status: 'failed',
  });
  assert.deepEqual(failed(report), ['status_matches']);
});

test('a wrong proof is wrong while the rows are behind, too', async () => {
  const { it, deps, receipt, log } = await storedAndLogged();
  const { transparency } = logThatSays(it, await log.asked.prove('rcpt_other'));
  const report = await verifyStored({ ...deps, transparency, reachedHead: async () => false }, receipt, null);
  assert.deepEqual(failed(report), ['receipt_logged']);
});

test('no transparency log, or rows that know of no checkpoint yet: no word of one, however old the receipt is', async () => {
  const { it, deps, receipt } = await stored();
  it.clock.advance(DAY_SECONDS * 1000);
  const report = await verifyStored(deps, receipt, null);
  assert.equal(logCheckOf(report), undefined);
});

test('a late one while the log has signed over no leaf yet: it has just begun, and no receipt is late', async () => {
  const { it, deps, receipt } = await stored();
  const { transparency, later } = logThatSays(it, notReady);
  later(DAY_SECONDS);
  const begun = { ...transparency, newest: async () => COVERS_NONE };
  const report = await verifyStored({ ...deps, transparency: begun }, receipt, null);
  assert.deepEqual([report.ok, logCheckOf(report)], [true, undefined]);
});

/** Counts signature checks and reads of streams. */
function counted(deps: VerifyDeps) {
  const counts = { signatures: 0, streams: 0 };
  const { log, primitives } = deps;
  return {
    counts,
    deps: {
      ...deps,
      log: {
        ...log,
        readStream(...given: Parameters<typeof log.readStream>) {
          counts.streams += given[0].startsWith('job-') ? 1 : 0;
          return log.readStream(...given);
        },
      },
      primitives: {
        ...primitives,
        ed25519Verify(...given: Parameters<typeof primitives.ed25519Verify>) {
          counts.signatures += 1;
          return primitives.ed25519Verify(...given);
        },
      },
    },
  };
}

test('what cannot change is verified once: the second report costs no signature check and no read of the stream', async () => {
  const found = await stored();
  const { deps, counts } = counted(found.deps);
  const verify = storedReceiptVerifier(deps);
  const first = await verify(found.receipt, found.job);
  const alone = await verify(found.receipt, null);
  assert.deepEqual(counts, { signatures: 2, streams: 1 });
  assert.deepEqual(await verify(found.receipt, found.job), first);
  assert.deepEqual(await verify(found.receipt, null), alone);
  assert.deepEqual(counts, { signatures: 2, streams: 1 });
});

test('other bytes, another row, other keys and a newer checkpoint are verified again', async () => {
  const { it, receipt, job, deps: whole } = await stored();
  const { deps, counts } = counted(whole);
  let latest: string | null = null;
  const verify = storedReceiptVerifier({
    ...deps,
    transparency: { ...noTransparency, latest: () => latest },
  });
  assert.ok((await verify(receipt, job)).ok);
  const other = await verify({ ...receipt, jws: `${receipt.jws.slice(0, -4)}AAAA` }, job);
  assert.ok(!other.ok && failed(other).includes('signature_valid'));
  assert.deepEqual(failed(await verify(receipt, { ...job, attempts: job.attempts + 1 })), ['attempts_match']);
  assert.ok((await verify(receipt, job)).ok);
  const before = counts.signatures;
  latest = 'a newer checkpoint';
  assert.ok((await verify(receipt, job)).ok);
  assert.equal(counts.signatures, before + 1);
  await given(it, 'keys-relay', keyActivated());
  await deps.keys.refresh();
  assert.ok((await verify(receipt, job)).ok);
  assert.equal(counts.signatures, before + 2);
});

test('a receipt that is not logged yet is judged again at each read: it becomes late', async () => {
  const { it, receipt, deps } = await stored();
  const { transparency, later } = logThatSays(it, notReady);
  const verify = storedReceiptVerifier({ ...deps, transparency });
  assert.deepEqual(failed(await verify(receipt, null)), []);
  later(PROMISE.mmdSeconds + 60);
  assert.deepEqual(failed(await verify(receipt, null)), ['receipt_logged']);
});
