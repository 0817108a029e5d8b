// What target and log say in the end of the calls that went to a cluster: nothing was sent twice, nothing is left
// running, and no process ended the job of another.
import assert from 'node:assert/strict';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { jobTypes } from '#test/support/world/service-log.ts';
import { assertVerifiesOffline, sendsRecorded, UNKNOWN_SENDS } from '#test/support/world/service-receipts.ts';
import type { Member } from './cluster.ts';
import type { Call } from './cluster-load.ts';
import type { RecordedRequest } from './tls-target.ts';

/** A call whose process was killed. `finished`: what a living one answered to it at once; null: 409, it ran. */
export type CutCall = Call & { readonly finished: Call['answer'] };

/** timeoutMs of the calls and 15 s: the lease; 30 s of grace. */
const WATCHED_MS = 1000 + 15_000 + 30_000;

/** No job twice, no call twice, as the receipts state. */
export function assertSentOnce(
  requests: readonly RecordedRequest[],
  calls: readonly Call[],
  cut: readonly CutCall[],
): void {
  const ids = requests.map(({ headers }) => headers['webhook-id']);
  assert.equal(new Set(ids).size, ids.length, 'no job was sent twice');
  const times = new Map<string, number>();
  for (const { path } of requests) times.set(path, (times.get(path) ?? 0) + 1);
  const finished = new Map(cut.map((call) => [call.path, call.finished]));
  let certain = 0;
  for (const { path, answer } of calls) {
    const sent = times.get(path) ?? 0;
    const last = answer ?? finished.get(path) ?? null;
    // A busy machine can let a call time out before it is sent.
    const { least, most } = last === null ? UNKNOWN_SENDS : sendsRecorded(last.body.receipt.jws);
    assert.ok(
      most <= 1 && least <= sent && sent <= most,
      `${path} was sent ${sent} times, recorded ${least} to ${most}`,
    );
    certain += least;
  }
  assert.ok(certain > 0, 'the target has answered');
}

export type Books = {
  readonly calls: readonly Call[];
  readonly killed: readonly Member[];
  readonly jwks: unknown;
};

/** By the log itself: every job has its end and its receipt, and only jobs of the killed were closed by others. */
export async function assertClosed(
  events: readonly RecordedEvent[],
  { calls, killed, jwks }: Books,
): Promise<void> {
  const jobs = jobTypes(events);
  for (const [id, types] of jobs) {
    assert.deepEqual(types, ['JobStarted', 'AttemptMade', 'JobCompleted', 'ReceiptSigned'], id);
  }
  const receipts = events.filter(({ type }) => type === 'ReceiptSigned');
  assert.equal(receipts.length, jobs.size);
  for (const { data } of receipts) await assertVerifiesOffline(String(data.jws), jwks);

  const started = new Map(
    events.filter(({ type }) => type === 'JobStarted').map(({ stream, data }) => [stream, data]),
  );
  const ownersOf = (some: (call: Call) => boolean) =>
    new Set(
      calls
        .filter((call) => call.answer !== null && some(call))
        .map(({ answer }) => {
          const { owner } = started.get(`job-${answer?.body.job.id}`) ?? {};
          return owner;
        }),
    );
  const dead = ownersOf(({ at }) => killed.includes(at));
  assert.equal(dead.size, killed.length);
  for (const { stream, type, data } of events) {
    if (type !== 'JobCompleted' || data.errorCategory !== 'interrupted_unknown') continue;
    const { owner, startedAt } = started.get(stream) ?? {};
    assert.ok(dead.has(owner), `${stream} was closed and its process lived`);
    const watched = Date.parse(String(data.completedAt)) - Date.parse(String(startedAt));
    assert.ok(watched >= WATCHED_MS, `${stream} was closed after ${watched} ms`);
  }
}
