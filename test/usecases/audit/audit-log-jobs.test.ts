// The state of one job in an audit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locationOf } from '#src/domain/audit/finding.ts';
import { auditJobs } from '#src/usecases/audit/audit-log-jobs.ts';
import { type ScratchRow, streamStates } from '#src/usecases/audit/stream-states.ts';
import { attemptRetried, JOB_ID, jobStarted } from '#test/support/given/given-events.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';

test('a stream without end keeps its state small, and each attempt too many is a finding', () => {
  const sizes: number[] = [];
  const scratch = memoryScratch<ScratchRow>();
  const states = streamStates({
    ...scratch,
    put(key, value) {
      sizes.push(JSON.stringify(value).length);
      scratch.put(key, value);
    },
  });
  const jobs = auditJobs({
    states,
    primitives,
    keys: () => [],
    leaves: () => 0,
    started: () => [],
    completed: () => [],
  });
  const stream = `job-${JOB_ID}`;
  const faults = [jobStarted(), ...Array.from({ length: 500 }, () => attemptRetried())].map((event, n) => {
    const recorded = {
      stream,
      revision: BigInt(n),
      position: String(n),
      id: `id-${n}`,
      created: '',
      metadata: {},
    };
    const data = JSON.parse(JSON.stringify(event.data));
    const stored = { ...recorded, type: event.type, data };
    return jobs.take(stored, event, locationOf(stored)).faults;
  });
  assert.deepEqual(
    sizes.slice(100).filter((size) => size > Math.max(...sizes.slice(0, 30)) + 100),
    [],
  );
  assert.deepEqual(
    faults.slice(10).filter((found) => found.length === 0),
    [],
  );
});
