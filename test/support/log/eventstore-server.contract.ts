// The contract of the test server, through the stock client: EventStoreDB 23.10.6 passes every assertion. Stream names, ids
// and types are new, so that a server may be shared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EventStoreDBClient, eventTypeFilter, jsonEvent, streamNameFilter } from '@eventstore/db-client';
import { waitFor } from '#test/support/process/service.ts';
import {
  type ClientTest,
  events,
  fresh,
  inAll,
  rejected,
  stored,
  subscribe,
  withClient,
} from './eventstore-server-client.ts';

export type NamedServer = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  /** A connection string. */
  url(): Promise<string>;
};

/** With credentials the client sends an append as a unary call, as the relay does; without, in its batch. */
const UNARY = { credentials: { username: 'admin', password: 'changeit' } };

export function describeEventStoreServer({ name, needs, url }: NamedServer): void {
  const asks = (title: string, body: ClientTest) =>
    test(`${name}: ${title}`, needs, async () => withClient(await url(), body));

  describeSubscriptions(asks);
  test(`${name}: a client discovers the leader`, needs, async () => {
    const discovering = (await url()).replace('esdb://', 'esdb+discover://');
    await withClient(discovering, async (client) => {
      const answer = await client.appendToStream(fresh('job'), events(1), { expectedRevision: 'no_stream' });
      assert.equal(answer.nextExpectedRevision, 0n);
    });
  });

  asks(
    "an append returns the last event's revision and position, which the events then have",
    async (client) => {
      const stream = fresh('job');
      const first = await client.appendToStream(stream, events(3), {
        expectedRevision: 'no_stream',
        ...UNARY,
      });
      const second = await client.appendToStream(stream, events(1), { expectedRevision: 2n, ...UNARY });
      const read = await stored(client, stream);
      assert.deepEqual(
        read.map(({ revision }) => revision),
        [0n, 1n, 2n, 3n],
      );
      assert.equal(first.nextExpectedRevision, 2n);
      assert.deepEqual(first.position, read[2]?.position);
      assert.equal(second.nextExpectedRevision, 3n);
      assert.deepEqual(second.position, read[3]?.position);
      const commits = read.map(({ position }) => position?.commit ?? 0n);
      assert.ok(
        commits.every((commit, at) => at === 0 || commit > (commits[at - 1] ?? 0n) + 50n),
        String(commits),
      );
      assert.ok(read.every(({ position }) => position?.commit === position?.prepare));
    },
  );

  asks("a wrong expectation is refused with the stream's revision", async (client) => {
    const stream = fresh('job');
    const append = (expectedRevision: bigint | 'no_stream') =>
      client.appendToStream(stream, events(1), { expectedRevision, ...UNARY });
    await rejected(append(0n), {
      type: 'wrong-expected-version',
      expectedVersion: 0n,
      actualVersion: 'no_stream',
    });
    await append('no_stream');
    await append(0n);
    await append(1n);
    await rejected(append('no_stream'), {
      expectedVersion: 'no_stream',
      actualVersion: 2n,
      streamName: stream,
    });
    await rejected(append(1n), { type: 'wrong-expected-version', expectedVersion: 1n, actualVersion: 2n });
    await rejected(append(7n), { type: 'wrong-expected-version', expectedVersion: 7n, actualVersion: 2n });
    assert.equal((await stored(client, stream)).length, 3);
  });

  asks('an append of over a megabyte is refused', async (client) => {
    const large = jsonEvent({ type: 'Large', data: { text: 'x'.repeat(1_100_000) } });
    const refused = client.appendToStream(fresh('job'), [large], UNARY);
    await rejected(refused, { type: 'maximum-append-size-exceeded', maxAppendSize: 1_048_576 });
  });
  asks(
    'the same ids at the same expectation return the first result, also for a leading part of them',
    async (client) => {
      const stream = fresh('job');
      const given = events(3);
      const first = await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
      await client.appendToStream(stream, events(2), { expectedRevision: 2n });
      assert.deepEqual(await client.appendToStream(stream, given, { expectedRevision: 'no_stream' }), first);
      assert.deepEqual(await client.appendToStream(stream, given.slice(1), { expectedRevision: 0n }), first);
      const part = await client.appendToStream(stream, given.slice(0, 2), { expectedRevision: 'no_stream' });
      assert.equal(part.nextExpectedRevision, 1n);
      assert.equal((await stored(client, stream)).length, 5);
    },
  );

  asks('ids of which some are stored are a wrong version; after a new id they are new', async (client) => {
    const stream = fresh('job');
    const given = events(2);
    await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
    const more = [...given, ...events(1)];
    const longer = client.appendToStream(stream, more, { expectedRevision: 'no_stream' });
    await rejected(longer, { type: 'wrong-expected-version', actualVersion: 1n });
    await client.appendToStream(stream, events(1), { expectedRevision: 1n });
    const [one, two] = given;
    assert.ok(one && two);
    const mixed = client.appendToStream(stream, [one, ...events(1), two], { expectedRevision: 'no_stream' });
    await rejected(mixed, { type: 'wrong-expected-version', actualVersion: 2n });
    const shifted = client.appendToStream(stream, given.slice(1), { expectedRevision: 'no_stream' });
    await rejected(shifted, { type: 'wrong-expected-version', actualVersion: 2n });
    const behind = await client.appendToStream(stream, [...events(1), ...given], { expectedRevision: 2n });
    assert.equal(behind.nextExpectedRevision, 5n);
    const elsewhere = await client.appendToStream(fresh('job'), given, { expectedRevision: 'no_stream' });
    assert.equal(elsewhere.nextExpectedRevision, 1n);
  });

  asks('of twenty appends with no_stream one succeeds', async (client) => {
    const stream = fresh('claim');
    const race = Array.from({ length: 20 }, () =>
      client.appendToStream(stream, events(1), { expectedRevision: 'no_stream' }),
    );
    const won = (await Promise.allSettled(race)).filter(({ status }) => status === 'fulfilled');
    assert.equal(won.length, 1);
    assert.equal((await stored(client, stream)).length, 1);
  });

  asks('a stream is read both ways, from either end or a revision, up to a count', async (client) => {
    const stream = fresh('job');
    await client.appendToStream(stream, events(40));
    const revisions = async (options: Parameters<EventStoreDBClient['readStream']>[1]) =>
      (await stored(client, stream, options)).map(({ revision }) => Number(revision));
    assert.deepEqual(await revisions({ maxCount: 2 }), [0, 1]);
    assert.equal((await revisions({})).length, 40);
    assert.deepEqual(await revisions({ fromRevision: 38n }), [38, 39]);
    assert.deepEqual(await revisions({ fromRevision: 99n }), []);
    assert.deepEqual(await revisions({ direction: 'backwards', fromRevision: 'end', maxCount: 2 }), [39, 38]);
    assert.deepEqual(await revisions({ direction: 'backwards', fromRevision: 1n }), [1, 0]);
    assert.deepEqual(await revisions({ direction: 'backwards', fromRevision: 99n, maxCount: 1 }), [39]);
    await rejected(stored(client, fresh('none')), { type: 'stream-not-found' });
  });

  asks('all is read from a position on, and backwards from before it', async (client) => {
    const stream = fresh('job');
    const { position } = await client.appendToStream(stream, events(3));
    assert.ok(position);
    const [here] = await inAll(client, { fromPosition: position, maxCount: 1 });
    assert.deepEqual([here?.streamId, here?.revision], [stream, 2n]);
    const before = await inAll(client, { fromPosition: position, direction: 'backwards', maxCount: 2 });
    assert.deepEqual(
      before.map(({ revision }) => revision),
      [1n, 0n],
    );
    const [first] = await inAll(client, { maxCount: 1 });
    assert.equal(first?.streamId[0], '$', 'the first event of a log is the server’s');
  });

  asks(
    'a deleted stream does not exist until the next append, a tombstoned stream never again',
    async (client) => {
      const stream = fresh('job');
      const given = events(2);
      await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
      await rejected(client.deleteStream(stream, { expectedRevision: 7n }), {
        expectedVersion: 7n,
        actualVersion: 1n,
      });
      await client.deleteStream(stream);
      await rejected(stored(client, stream), { type: 'stream-not-found' });
      const repeat = await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
      assert.deepEqual([repeat.nextExpectedRevision, repeat.position], [1n, undefined]);
      await client.appendToStream(stream, events(1), { expectedRevision: 'no_stream' });
      assert.deepEqual(
        (await stored(client, stream)).map(({ revision }) => revision),
        [2n],
      );
      await client.tombstoneStream(stream);
      await rejected(stored(client, stream), { type: 'stream-deleted' });
      await rejected(client.appendToStream(stream, events(1)), { type: 'stream-deleted' });
    },
  );
}

// Subscriptions.
function describeSubscriptions(asks: (title: string, body: ClientTest) => void): void {
  asks(
    'a subscription continues after its position, reports caughtUp, then sends live events',
    async (client) => {
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
    },
  );

  asks('a filtered subscription skips other events and reports checkpoints', async (client) => {
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
    // Others may write at the same time: there is a checkpoint every 32 events of any writer.
    await client.appendToStream(stream, events(63));
    const reached = () => (heard.checkpoints.at(-1) ?? 0n) >= (live.position?.commit ?? 0n);
    await waitFor('a live checkpoint at or after the first live event', reached);
    await client.appendToStream(stream, events(1, type));
    await waitFor('the live event', () => heard.words.includes(`${stream} 146`));
    await heard.end();
    const named = streamNameFilter({ regex: `^${stream}$` });
    const byName = subscribe(client, { fromPosition: position, filter: named });
    await waitFor(
      'the stream by its name',
      () => byName.words.filter((word) => word.startsWith('job')).length === 146,
    );
    await byName.end();
  });
}
