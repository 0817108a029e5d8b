// Events that cannot be read: the audit names each, continues, and reports nothing as missing that is only unreadable.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Damage } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { audit, findingTexts, givenRecord, nth } from '#test/support/given/audited-record.ts';
import { DEMO, execute } from '#test/support/given/given-call.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';

/** Without a transparency log, whose tree every lost receipt changes. */
async function record() {
  const it = await givenRecord({ log: false });
  const demo = it.process({ payments: { ...it.payments, mode: 'demo' } });
  it.outbound.script(failing({ retryAfterMs: 20 }), succeeding());
  await letPass(
    it.clock,
    execute(demo, { ...DEMO, key: 'a', request: { retry: { attempts: 2, backoffMs: 5 } } }),
  );
  await execute(demo, { ...DEMO, key: 'b' });
  await it.paid();
  return it.log.events;
}

const damageOf = ({ position, stream, revision }: RecordedEvent): Damage => ({
  from: position,
  to: position,
  stream,
  revision: String(revision),
  problem: 'changed',
});

async function withDamaged(events: readonly RecordedEvent[], lost: readonly RecordedEvent[]) {
  const left = events.filter((event) => !lost.includes(event));
  return audit(left, undefined, lost.map(damageOf));
}

test('a damaged event of a job is one finding, whichever it is', async () => {
  const events = await record();
  for (const type of ['JobStarted', 'AttemptMade', 'JobCompleted', 'ReceiptSigned'])
    for (const n of [0, 1]) {
      const lost = nth(events, type, n);
      const { findings, summary } = await withDamaged(events, [lost]);
      assert.deepEqual(
        findings.map(({ kind, stream, revision, position, jobId }) => [
          kind,
          stream,
          revision,
          position,
          jobId,
        ]),
        [
          [
            'event_damaged',
            lost.stream,
            String(lost.revision),
            lost.position,
            lost.stream.slice('job-'.length),
          ],
        ],
        type,
      );
      assert.match(
        findings[0]?.message ?? '',
        /^The event at revision .* is damaged: the bytes are not those that were stored\.$/,
      );
      assert.deepEqual([summary.damaged, summary.events], [1, events.length - 1]);
    }
});

test('all events of a job are damaged, by name or as a range of positions: no gap is reported', async () => {
  const events = await record();
  const { stream } = nth(events, 'JobStarted', 1);
  const lost = events.filter((event) => event.stream === stream);
  const named = await withDamaged(events, lost);
  assert.deepEqual([...new Set(named.findings.map(({ kind }) => kind))], ['event_damaged']);
  assert.equal(named.findings.length, lost.length);

  const own = events.indexOf(lost[0] ?? assert.fail());
  const last = lost.filter((event, i) => events[own + i] === event).at(-1);
  const [first] = lost;
  assert.ok(first !== undefined && last === lost.at(-1), 'its events follow each other');
  const range = { from: first.position, to: last?.position ?? '', stream: null, revision: null };
  const left = events.filter((event) => !lost.includes(event));
  const unnamed = await audit(left, undefined, [{ ...range, problem: 'unreadable' }]);
  assert.deepEqual(findingTexts(unnamed), ['event_damaged null null']);
  assert.match(
    unnamed.findings[0]?.message ?? '',
    new RegExp(`^The ${lost.length} events at positions .* are damaged: `),
  );
  assert.equal(unnamed.summary.damaged, lost.length);
});

test('what is missing beside the damage is still found', async () => {
  const events = await record();
  const lost = nth(events, 'AttemptMade', 2);
  const removed = nth(events, 'JobStarted', 1);
  const left = events.filter((event) => event !== lost && event !== removed);
  const kinds = (await audit(left, undefined, [damageOf(lost)])).findings.map(({ kind }) => kind);
  assert.ok(kinds.includes('position_gap') && kinds.includes('revision_gap'), kinds.join());
});

test('a damaged event of a payment: named, and what the record lacks without it is reported too', async () => {
  const events = await record();
  const { findings } = await withDamaged(events, [nth(events, 'PaymentSettled')]);
  const kinds = findings.map(({ kind }) => kind);
  assert.ok(kinds.includes('event_damaged') && kinds.length > 1, kinds.join());
  assert.ok(!kinds.includes('position_gap') && !kinds.includes('revision_gap'), kinds.join());
});
