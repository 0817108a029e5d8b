// What every memory of the event log in use does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KnownLog } from '#src/domain/signing-keys/known-log.ts';
import type { LogMemory } from '#src/ports/log-memory.ts';
import { commitment } from '#test/support/given/given-events.ts';

const first: KnownLog = {
  id: '0f8fad5b-d9cb-469f-a165-70867728950e',
  earlier: 0,
  keys: [
    {
      keyId: commitment('k'),
      purpose: 'receipt',
      x: commitment('x'),
      notBefore: 1_700_000_000,
      notAfter: 1_700_000_600,
      compromisedAt: null,
    },
  ],
};

/** `make`: a new memory without content. `opened`: the same memory, opened by another process. */
export function logMemoryContract(make: () => { readonly memory: LogMemory; opened(): LogMemory }): void {
  test('remembers the last log that was written, for every process', () => {
    const { memory, opened } = make();
    assert.equal(memory.read(), null);
    for (const log of [first, { ...first, id: null, earlier: 1 }, { ...first, keys: [] }]) {
      memory.write(log);
      assert.deepEqual(opened().read(), log);
      assert.deepEqual(memory.read(), log);
    }
  });
}
