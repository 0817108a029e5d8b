// An audit in several runs, each of which continues the one before: it finds what one audit of the complete record finds, in
// the same order, whatever was changed in the record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import { type AuditDeps, Auditor } from '#src/usecases/audit/audit-log.ts';
import { continueAudit } from '#src/usecases/audit/continue-audit.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { kinds, mutableRecord, rememberedPrimitives } from '#test/support/given/mutable-record.ts';
import { mutations, swapsAcrossStreams } from '#test/support/given/mutations.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';

type Events = readonly RecordedEvent[];

const { events } = (await mutableRecord()).log;
const primitives = rememberedPrimitives();

const logOf = (all: Events): Pick<EventLog, 'readStream'> => ({
  readStream: async (stream, { from = 0n } = {}) =>
    all.filter((event) => event.stream === stream && event.revision >= BigInt(from)),
});

/** `state`: of the earlier runs. */
async function run(
  all: Events,
  state = memoryScratch<ScratchRow>(),
  changes: Partial<AuditDeps> & { readonly release?: string } = {},
) {
  const findings: Finding[] = [];
  const { release = '1', ...deps } = changes;
  const auditor = new Auditor({
    primitives,
    scratch: state,
    onFinding: (finding) => findings.push(finding),
    state: { release, save: () => undefined },
    ...deps,
  });
  const continued = await continueAudit(auditor, logOf(all));
  if (continued.kind !== 'continued') return { kind: continued.kind, findings, summary: null, taken: 0 };
  const rest = all.filter(({ position }) => continued.after === null || position > continued.after);
  for (const event of rest) await auditor.take(event);
  const summary = await auditor.finish();
  const saved = auditor.kept.save();
  return { kind: continued.kind, findings, summary, taken: rest.length, saved };
}

/** In runs that end after these events. */
async function inRuns(all: Events, ends: readonly number[]) {
  const state = memoryScratch<ScratchRow>();
  for (const end of ends) assert.equal((await run(all.slice(0, end), state)).kind, 'continued');
  return run(all, state);
}

/** A few, and others for each record. */
function endsIn({ length }: Events, number: number): readonly number[] {
  const first = (number * 7) % (length - 20);
  return [first, first + 1, first + 1 + ((number * 13) % (length - first - 2))];
}

test('an audit in several runs finds what one audit finds, in its order, for each change of each event', async () => {
  const wrong: string[] = [];
  let number = 0;
  const all = [...mutations(events, kinds(events)), ...swapsAcrossStreams(events, kinds(events))];
  for (const { name, events: changed } of all) {
    const ends = endsIn(changed, ++number);
    const [whole, sliced] = [await run(changed), await inRuns(changed, ends)];
    if (JSON.stringify(whole.findings) !== JSON.stringify(sliced.findings))
      wrong.push(`${name}, cut at ${ends}`);
    assert.deepEqual(sliced.summary, whole.summary, name);
  }
  assert.deepEqual(wrong, []);
});

test('an audit with a run for each event finds nothing in an honest record', async () => {
  const ends = events.map((_, index) => index + 1);
  const { findings, summary, taken } = await inRuns(events, ends);
  assert.deepEqual([findings, taken], [[], 0]);
  assert.deepEqual(summary, (await run(events)).summary);
});

test('a log without the last checkpoint, or without the last event, is not continued, and nothing is reported', async () => {
  const state = memoryScratch<ScratchRow>();
  await run(events, state);
  const last = events.findLastIndex(({ type }) => type === 'CheckpointSigned');
  const without = (change: (event: RecordedEvent, index: number) => readonly RecordedEvent[]) =>
    events.flatMap(change);
  const other = (event: RecordedEvent, changes: object) => [{ ...event, ...changes }];
  for (const log of [
    [],
    events.slice(0, last),
    events.slice(0, -1),
    without((event, index) => (index === last ? [] : [event])),
    without((event, index) => (index === last ? other(event, { id: events[0]?.id }) : [event])),
    without((event, index) =>
      index === last ? other(event, { data: { ...event.data, note: events[3]?.data.note ?? '' } }) : [event],
    ),
    without((event, index) => (index === events.length - 1 ? other(event, { id: events[0]?.id }) : [event])),
  ])
    assert.deepEqual((await run(log, state)).kind, 'other_log');
  assert.equal((await run(events, state)).kind, 'continued');
});

test('a state of another release, and of other trusted keys, is not continued', async () => {
  const state = memoryScratch<ScratchRow>();
  await run(events, state);
  assert.equal((await run(events, state, { release: '2' })).kind, 'other_release');
  const kept = { keys: [], checkpoints: [] };
  assert.equal((await run(events, state, { kept })).kind, 'other_evidence');
});

test('nothing is kept of a log with damage: the next run reads it again, when the event may have been put back', async () => {
  const state = memoryScratch<ScratchRow>();
  const half = events.slice(0, events.length >> 1);
  await run(half, state);
  const auditor = new Auditor({
    primitives,
    scratch: { ...state, put: () => undefined },
    onFinding: () => undefined,
    state: { release: '1', save: () => assert.fail('saved') },
  });
  const [lost] = events.slice(half.length);
  assert.ok(lost);
  const { position: from, stream, revision } = lost;
  auditor.takeDamaged({ from, to: from, stream, revision: String(revision), problem: 'changed' });
  await auditor.finish();
  assert.equal(auditor.kept.save(), false);
  const again = await run(events, state);
  assert.deepEqual([again.findings, again.taken], [[], events.length - half.length]);
});
