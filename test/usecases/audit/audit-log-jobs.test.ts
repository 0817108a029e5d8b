// The state of one job in an audit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditJobs } from '#src/usecases/audit/audit-log-jobs.ts';
import { attemptRetried, JOB_ID, jobStarted } from '#test/support/given-events.ts';
import { primitives } from '#test/support/primitives.ts';

test('a stream without end keeps its state small, and each attempt too many is a finding', () => {
  const sizes: number[] = [];
  const tables = new Map<string, Map<string, unknown>>();
  const jobs = auditJobs({
    scratch: {
      table(name) {
        const rows = tables.get(name) ?? new Map<string, never>();
        tables.set(name, rows);
        return {
          get: (key) => (rows.get(key) as never) ?? null,
          put(key, value) {
            if (name === 'open') sizes.push(JSON.stringify(value).length);
            rows.set(key, value);
          },
          delete: (key) => void rows.delete(key),
          entries: () => [],
        };
      },
      close: () => undefined,
    },
    primitives,
    keys: () => [],
    started: () => [],
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
    return jobs.take({ ...recorded, type: event.type, data: JSON.parse(JSON.stringify(event.data)) }, event)
      .faults;
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
