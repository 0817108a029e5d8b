// The contract's part on reading: fidelity, order, direction, pages, filters, head.
import assert from 'node:assert/strict';
import type { NewEvent } from '#src/ports/event-log.ts';
import { assertGlobalOrder, freshId, freshStream, ids, newEvent, newEvents } from './event-log-fixtures.ts';
import type { LogTest } from './event-log-harness.ts';

export function readContract(logged: LogTest): void {
  logged('an event comes back whole: id, type, revision, data, metadata, a time in UTC', async ({ log }) => {
    const stream = freshStream();
    const earliest = Date.now() - 60_000;
    const event: NewEvent = {
      id: crypto.randomUUID(),
      type: 'Noted',
      data: { text: 'a', list: [1, 2.5, -0.125, null, true, { deep: [] }], empty: {} },
      metadata: { $correlationId: crypto.randomUUID(), $causationId: crypto.randomUUID() },
    };
    const { position } = await log.append(stream, 'no_stream', [event]);
    const [recorded] = await log.readStream(stream);
    assert.ok(recorded !== undefined);
    const { created, ...rest } = recorded;
    assert.deepEqual(rest, { ...event, stream, revision: 0n, position: rest.position });
    assert.equal(rest.position, position);
    assert.match(created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    assert.ok(Date.parse(created) >= earliest);
  });

  logged('any text comes back unchanged, and an event of 64 kB whole', async ({ log }) => {
    const stream = freshStream();
    const text = 'žluťoučký 日本語 🦄 \u0000 \u2028 " \\ \r\n \ufeff e\u0301';
    const large = newEvent('Large', { text: '🦄é'.repeat(16_384), 'näme 🦄': text });
    await log.append(stream, 'no_stream', [newEvent('Noted', { text, [text]: 1 }), large, newEvent()]);
    const [first, second, third] = await log.readStream(stream);
    assert.deepEqual(first?.data, { text, [text]: 1 });
    assert.deepEqual(second?.data, large.data);
    assert.deepEqual(third?.data, {});
  });

  logged('a stream that is not there is empty', async ({ log }) => {
    const stream = freshStream();
    assert.deepEqual(await log.readStream(stream), []);
    assert.deepEqual(await log.readStream(stream, { direction: 'backwards', max: 1 }), []);
  });

  logged('a stream is read in both directions, from a revision on, up to a number', async ({ log }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(5));
    const revisions = async (options?: Parameters<typeof log.readStream>[1]) =>
      (await log.readStream(stream, options)).map((event) => Number(event.revision));
    assert.deepEqual(await revisions(), [0, 1, 2, 3, 4]);
    assert.deepEqual(await revisions({ from: 2n }), [2, 3, 4]);
    assert.deepEqual(await revisions({ from: 1n, max: 2 }), [1, 2]);
    assert.deepEqual(await revisions({ from: 5n }), []);
    assert.deepEqual(await revisions({ direction: 'backwards' }), [4, 3, 2, 1, 0]);
    assert.deepEqual(await revisions({ direction: 'backwards', max: 2 }), [4, 3]);
    assert.deepEqual(await revisions({ direction: 'backwards', from: 2n }), [2, 1, 0]);
    assert.deepEqual(await revisions({ direction: 'backwards', from: 0n, max: 9 }), [0]);
    assert.deepEqual(await revisions({ direction: 'backwards', from: 9n, max: 1 }), [4]);
  });

  logged('a stream of 1,200 events is read whole, both ways', async ({ log }) => {
    const stream = freshStream();
    const events = newEvents(1200);
    await log.append(stream, 'no_stream', events.slice(0, 700));
    await log.append(stream, 699n, events.slice(700));
    assert.deepEqual(ids(await log.readStream(stream)), ids(events));
    const backwards = await log.readStream(stream, { direction: 'backwards', max: 1100 });
    assert.deepEqual(ids(backwards), ids(events).reverse().slice(0, 1100));
  });

  logged(
    'pages of readAll join without gap or overlap, in global order; max counts events',
    async ({ log }) => {
      const streams = [freshStream(), freshStream(), freshStream()];
      const type = `Paged${freshId()}`;
      const after = await log.head();
      for (let n = 0; n < 8; n++) {
        await Promise.all(
          streams.map((stream) =>
            log.append(stream, n === 0 ? 'no_stream' : BigInt(n - 1), newEvents(1, type)),
          ),
        );
      }
      const types = [type];
      const whole = await log.readAll({ after, max: 100, types });
      assert.equal(whole.length, 24);
      assertGlobalOrder(whole);
      const paged = [];
      for (let cursor = after; ; ) {
        const page = await log.readAll({ after: cursor, max: 5, types });
        if (page.length === 0) break;
        assert.ok(page.length <= 5);
        paged.push(...page);
        cursor = page.at(-1)?.position ?? null;
      }
      assert.deepEqual(paged, whole);
      assert.deepEqual(await log.readAll({ after: whole.at(-1)?.position ?? null, max: 5, types }), []);
    },
  );

  logged('readAll without types holds every acknowledged event in order', async ({ log }) => {
    const stream = freshStream();
    // The beginning if the log is new; on a shared server the events of others before it are not read.
    const before = await log.head();
    const { position: last } = await log.append(stream, 'no_stream', newEvents(3));
    const found = [];
    // Others may write without end.
    for (let after = before; after === null || after < last; ) {
      const page = await log.readAll({ after, max: 500 });
      assertGlobalOrder(page);
      found.push(...page.filter((event) => event.stream === stream));
      after = page.at(-1)?.position ?? last;
    }
    assert.deepEqual(found, await log.readStream(stream));
  });

  logged('events are filtered by types', async ({ log }) => {
    const scope = freshId();
    const after = await log.head();
    const put = (category: string, ...types: string[]) =>
      log.append(
        `${scope}${category}-${freshId()}`,
        'no_stream',
        types.map((type) => newEvent(type)),
      );
    await put('job', `Started${scope}`, `Done${scope}`);
    await put('pay', `Started${scope}`, `Paid${scope}`);
    await put('jobs', `Done${scope}`);
    const read = async (types: string[], max = 50) =>
      (await log.readAll({ after, max, types })).map((event) => event.type.replace(scope, ''));
    assert.deepEqual(await read([`Started${scope}`]), ['Started', 'Started']);
    assert.deepEqual(await read([`Done${scope}`, `Paid${scope}`]), ['Done', 'Paid', 'Done']);
    assert.deepEqual(await read([`Done${scope}`, `Paid${scope}`], 2), ['Done', 'Paid']);
    assert.deepEqual(await read([`started${scope}`]), []);
  });

  logged('the head is at or after every acknowledged append, also while others append', async ({ log }) => {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const stream = freshStream();
        for (let n = 0; n < 10; n++) {
          const expected = n === 0 ? 'no_stream' : BigInt(n - 1);
          const { position } = await log.append(stream, expected, newEvents(1));
          const head = await log.head();
          assert.ok(head !== null && head >= position, `${head} is before ${position}`);
        }
      }),
    );
  });

  logged(
    'positions compare as text in global order, over more than one length of number',
    async ({ log }) => {
      const stream = freshStream();
      const { position } = await log.append(stream, 'no_stream', newEvents(120));
      const positions = (await log.readStream(stream)).map((event) => event.position);
      assert.deepEqual([...positions].sort(), positions);
      assert.equal(new Set(positions).size, 120);
      assert.equal(positions.at(-1), position);
    },
  );

  logged('a log that answers is healthy', async ({ log }) => {
    assert.deepEqual(await log.health(), { ok: true });
  });
}
