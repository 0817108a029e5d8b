// Notices only wake: what a subscription delivers does not depend on them, and one that went deaf is made anew.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appendWatch } from '#src/adapters/event-log/eventstoredb/append-watch.ts';
import type { LogReader, Page } from '#src/adapters/event-log/eventstoredb/read.ts';
import { eventStoreSubscription } from '#src/adapters/event-log/eventstoredb/subscribe.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { newEvent, within } from '#test/support/event-log-fixtures.ts';

const OPTIONS = { timeout: 60_000 };

/** A log in memory whose endless reads are told of, and tell, by hand. */
function bench() {
  const events: RecordedEvent[] = [];
  const reads: { notice(): void; end(): void }[] = [];
  const state = { failing: 0, looks: 0, opened: () => {}, looked: () => {} };
  const watch = appendWatch((_request, notice) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    reads.push({ notice, end });
    state.opened();
    return { ended, cancel: () => end() };
  });
  const page = async (after: string | null): Promise<Page> => {
    if (state.failing-- > 0) throw new Error('away');
    const found = events.filter(({ position }) => after === null || position > after);
    state.looks++;
    state.looked();
    return { events: found, cursor: found.at(-1)?.position ?? after, end: true };
  };
  const none = () => Promise.reject(new Error('not asked for'));
  const reader: LogReader = { page, streamPage: none, before: none, probe: none };
  const store = () => {
    const position = String(events.length).padStart(4, '0');
    events.push({ ...newEvent(), stream: 'a-1', revision: BigInt(events.length), position, created: '' });
  };
  /** Subscribes until that many messages came; `told` after each. */
  const take = async (count: number, told: (kind: string, nth: number) => void): Promise<string[]> => {
    const abort = new AbortController();
    const closing = new AbortController().signal;
    const taken: string[] = [];
    const dependencies = { reader, watch, closing, assertOpen: () => {} };
    for await (const message of eventStoreSubscription(dependencies, { after: null, signal: abort.signal })) {
      taken.push(message.kind === 'event' ? message.event.position : message.kind);
      if (taken.length === count) abort.abort();
      else told(message.kind, taken.length);
    }
    return taken;
  };
  return { reads, state, watch, store, take };
}

test(
  'eventstoredb: an event that no notice tells of is delivered, and the deaf read is made anew',
  OPTIONS,
  async () => {
    const { reads, state, watch, store, take } = bench();
    const renewed = new Promise<void>((resolve) => {
      state.opened = () => {
        reads.at(-1)?.notice();
        if (reads.length === 2) resolve();
      };
    });
    // The second look is for what came before the endless read stood; nothing tells of what comes after it.
    state.looked = () => {
      if (state.looks === 2) store();
    };
    const taken = await within(
      take(2, () => {}),
      'the messages',
    );
    assert.deepEqual(taken, ['caught_up', '0000']);
    await within(renewed, 'another endless read');
    watch.stop();
  },
);

test('eventstoredb: a subscription goes on from its position after reads that fail', OPTIONS, async () => {
  const { reads, state, watch, store, take } = bench();
  store();
  state.failing = 3;
  const taken = await within(
    take(4, (kind) => {
      if (kind !== 'caught_up') return;
      state.failing = 2;
      store();
      store();
      watch.announce();
    }),
    'the messages',
  );
  assert.deepEqual(taken, ['0000', 'caught_up', '0001', '0002']);
  assert.ok(reads.length <= 1);
  watch.stop();
});

test(
  'eventstoredb: an endless read that ends is made anew, and what came meanwhile is looked for',
  OPTIONS,
  async () => {
    const { reads, state, watch, store, take } = bench();
    state.opened = () => {
      const read = reads.at(-1);
      if (reads.length === 2) store();
      read?.notice();
      if (reads.length === 1) queueMicrotask(() => read?.end());
    };
    assert.deepEqual(
      await within(
        take(2, () => {}),
        'the messages',
      ),
      ['caught_up', '0000'],
    );
    assert.equal(reads.length, 2);
    watch.stop();
  },
);
