// What the stock client is answered, by the test server and by a real one alike: every assertion here was met by
// EventStoreDB 23.10.6. Stream names, ids and types are fresh, so that a server may be shared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import {
  type ClientTest,
  events,
  fresh,
  inAll,
  rejected,
  stored,
  withClient,
} from './eventstore-server-client.ts';
import { describeSubscriptions } from './eventstore-server-subscriptions.contract.ts';

export type NamedServer = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  /** A connection string. */
  url(): Promise<string>;
};

export function describeEventStoreServer({ name, needs, url }: NamedServer): void {
  const asks = (title: string, body: ClientTest) =>
    test(`${name}: ${title}`, needs, async () => withClient(await url(), body));

  describeSubscriptions(asks);
  test(`${name}: a client that asks for the leader finds it`, needs, async () => {
    const discovering = (await url()).replace('esdb://', 'esdb+discover://');
    await withClient(discovering, async (client) => {
      const answer = await client.appendToStream(fresh('job'), events(1), { expectedRevision: 'no_stream' });
      assert.equal(answer.nextExpectedRevision, 0n);
    });
  });

  for (const [call, options] of [
    ['BatchAppend', {}],
    // The client takes the older call where credentials come with the append.
    ['Append', { credentials: { username: 'admin', password: 'changeit' } }],
  ] as const) {
    asks(
      `${call} answers the last event's revision and position, which the events then have`,
      async (client) => {
        const stream = fresh('job');
        const first = await client.appendToStream(stream, events(3), {
          expectedRevision: 'no_stream',
          ...options,
        });
        const second = await client.appendToStream(stream, events(1), { expectedRevision: 2n, ...options });
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

    asks(`${call} says no with the stream's revision`, async (client) => {
      const stream = fresh('job');
      const append = (expectedRevision: bigint | 'any' | 'no_stream' | 'stream_exists') =>
        client.appendToStream(stream, events(1), { expectedRevision, ...options });
      await rejected(append(0n), {
        type: 'wrong-expected-version',
        expectedVersion: 0n,
        actualVersion: 'no_stream',
      });
      await rejected(append('stream_exists'), {
        expectedVersion: 'stream_exists',
        actualVersion: 'no_stream',
      });
      await append('no_stream');
      await append('stream_exists');
      await append('any');
      await rejected(append('no_stream'), {
        expectedVersion: 'no_stream',
        actualVersion: 2n,
        streamName: stream,
      });
      await rejected(append(1n), { type: 'wrong-expected-version', expectedVersion: 1n, actualVersion: 2n });
      await rejected(append(7n), { type: 'wrong-expected-version', expectedVersion: 7n, actualVersion: 2n });
      assert.equal((await stored(client, stream)).length, 3);
    });

    asks(`${call} of over a megabyte is refused`, async (client) => {
      const large = jsonEvent({ type: 'Large', data: { text: 'x'.repeat(1_100_000) } });
      const refused = client.appendToStream(fresh('job'), [large], options);
      await rejected(refused, { type: 'maximum-append-size-exceeded', maxAppendSize: 1_048_576 });
    });
  }

  asks(
    'the same ids at the same expectation are answered as the first time, whole or from the front',
    async (client) => {
      const stream = fresh('job');
      const given = events(3);
      const first = await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
      await client.appendToStream(stream, events(2), { expectedRevision: 2n });
      for (const expectedRevision of ['no_stream', 'any', 'stream_exists'] as const) {
        assert.deepEqual(await client.appendToStream(stream, given, { expectedRevision }), first);
      }
      assert.deepEqual(await client.appendToStream(stream, given.slice(1), { expectedRevision: 0n }), first);
      const part = await client.appendToStream(stream, given.slice(0, 2), { expectedRevision: 'no_stream' });
      assert.equal(part.nextExpectedRevision, 1n);
      assert.equal((await stored(client, stream)).length, 5);
    },
  );

  asks(
    'ids that were stored in part are a wrong version, but behind a new one they are new',
    async (client) => {
      const stream = fresh('job');
      const given = events(2);
      await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
      const more = [...given, ...events(1)];
      for (const expectedRevision of ['no_stream', 'any'] as const) {
        const refused = client.appendToStream(stream, more, { expectedRevision });
        await rejected(refused, { type: 'wrong-expected-version', actualVersion: 1n });
      }
      await client.appendToStream(stream, events(1), { expectedRevision: 1n });
      const [one, two] = given;
      assert.ok(one && two);
      for (const expectedRevision of ['no_stream', 'any'] as const) {
        const refused = client.appendToStream(stream, [one, ...events(1), two], { expectedRevision });
        await rejected(refused, { type: 'wrong-expected-version', actualVersion: 2n });
      }
      const shifted = client.appendToStream(stream, given.slice(1), { expectedRevision: 'no_stream' });
      await rejected(shifted, { type: 'wrong-expected-version', actualVersion: 2n });
      const behind = await client.appendToStream(stream, [...events(1), ...given], {
        expectedRevision: 'any',
      });
      assert.equal(behind.nextExpectedRevision, 5n);
      const elsewhere = await client.appendToStream(fresh('job'), given, { expectedRevision: 'any' });
      assert.equal(elsewhere.nextExpectedRevision, 1n);
    },
  );

  asks('of twenty that found no stream one wins', async (client) => {
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
    assert.equal(first?.streamId[0], '$', 'a server writes to its log before anybody else does');
  });

  asks('a deleted stream is not found until it is written again, a tombstone is for ever', async (client) => {
    const stream = fresh('job');
    const given = events(2);
    await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
    await rejected(client.deleteStream(stream, { expectedRevision: 7n }), {
      expectedVersion: 7n,
      actualVersion: 1n,
    });
    await client.deleteStream(stream);
    await rejected(stored(client, stream), { type: 'stream-not-found' });
    await rejected(client.appendToStream(stream, events(1), { expectedRevision: 'stream_exists' }), {
      type: 'stream-deleted',
    });
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
  });
}
