// The part of the questions to a server that is about subscriptions.
import assert from 'node:assert/strict';
import { eventTypeFilter, streamNameFilter } from '@eventstore/db-client';
import { type ClientTest, events, fresh, listen, subscribe } from './eventstore-server-client.ts';
import { waitFor } from './service.ts';

export function describeSubscriptions(asks: (title: string, body: ClientTest) => void): void {
  asks('a subscription goes on behind its position, says when it caught up, then follows', async (client) => {
    const stream = fresh('job');
    const { position } = await client.appendToStream(stream, events(1));
    assert.ok(position);
    await client.appendToStream(stream, events(40));
    const heard = subscribe(client, { fromPosition: position });
    await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
    const mine = () => heard.words.filter((word) => word.startsWith(stream));
    assert.equal(heard.words[0], 'confirmation');
    assert.deepEqual(
      mine(),
      [...Array(40).keys()].map((at) => `${stream} ${at + 1}`),
    );
    await client.appendToStream(stream, events(2));
    await waitFor('the live events', () => mine().length === 42);
    assert.ok(heard.words.indexOf(`${stream} 41`) > heard.words.indexOf('caughtUp'));
    await heard.end();
  });

  asks('a filtered subscription passes over others, and tells how far it looked', async (client) => {
    const [stream, type] = [fresh('job'), fresh('Type')];
    const { position } = await client.appendToStream(stream, events(1));
    assert.ok(position);
    await client.appendToStream(stream, [...events(50), ...events(1, type), ...events(30)]);
    const filter = eventTypeFilter({ prefixes: [type] });
    const heard = subscribe(client, { fromPosition: position, filter });
    await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
    assert.deepEqual(
      heard.words.filter((word) => word.startsWith('job')),
      [`${stream} 51`],
    );
    const before = heard.words.slice(1, heard.words.indexOf(`${stream} 51`));
    assert.ok(before.length > 0 && before.every((word) => word === 'checkpoint'), String(before));
    const live = await client.appendToStream(stream, events(1));
    await client.appendToStream(stream, events(31));
    const at = (word: string) => heard.words.lastIndexOf(word);
    await waitFor('a live checkpoint', () => at('checkpoint') > at('caughtUp'));
    assert.ok((heard.checkpoints.at(-1) ?? 0n) >= (live.position?.commit ?? 0n));
    await client.appendToStream(stream, events(1, type));
    await waitFor('the live event', () => heard.words.includes(`${stream} 114`));
    await heard.end();
    const byName = subscribe(client, { filter: streamNameFilter({ regex: `^${stream}$` }) });
    await waitFor(
      'the stream by its name',
      () => byName.words.filter((word) => word.startsWith('job')).length === 115,
    );
    await byName.end();
  });

  asks(
    'a subscription to one stream waits for it, goes on behind its revision, and follows',
    async (client) => {
      const stream = fresh('job');
      const waiting = listen(client.subscribeToStream(stream));
      await waitFor('the confirmation', () => waiting.words.includes('confirmation'));
      await client.appendToStream(stream, events(2));
      await waitFor('the stream', () => waiting.words.length === 4);
      assert.deepEqual(waiting.words, ['confirmation', `${stream} 0`, `${stream} 1`, 'caughtUp']);
      await waiting.end();
      const behind = listen(client.subscribeToStream(stream, { fromRevision: 0n }));
      await waitFor('it to catch up', () => behind.words.includes('caughtUp'));
      await client.appendToStream(stream, events(1));
      await waitFor('the live event', () => behind.words.length === 4);
      assert.deepEqual(behind.words, ['confirmation', `${stream} 1`, 'caughtUp', `${stream} 2`]);
      await client.tombstoneStream(stream);
      await waitFor('the end', () => behind.words.at(-1) === 'error stream-deleted');
    },
  );
}
