// The stock client, as tests of the test server use it.
import assert from 'node:assert/strict';
import { EventStoreDBClient, type Filter, jsonEvent, type ResolvedEvent } from '@eventstore/db-client';

export type ClientTest = (client: EventStoreDBClient) => Promise<void>;

export async function withClient(url: string, body: ClientTest): Promise<void> {
  const client = EventStoreDBClient.connectionString(url);
  try {
    await body(client);
  } finally {
    await client.dispose();
  }
}

export const fresh = (name: string) => `${name}-${crypto.randomUUID().replaceAll('-', '')}`;

export const events = (count: number, type = 'Happened') =>
  Array.from({ length: count }, (_, n) => jsonEvent({ type, data: { n }, metadata: { by: 'test' } }));

export async function stored(
  client: EventStoreDBClient,
  stream: string,
  options: Parameters<EventStoreDBClient['readStream']>[1] = {},
) {
  const found = [];
  for await (const { event } of client.readStream(stream, options)) if (event) found.push(event);
  return found;
}

export async function inAll(
  client: EventStoreDBClient,
  options: Parameters<EventStoreDBClient['readAll']>[0],
) {
  const found = [];
  for await (const { event } of client.readAll(options)) if (event) found.push(event);
  return found;
}

export function rejected(
  call: Promise<unknown>,
  properties: Readonly<Record<string, unknown>>,
): Promise<void> {
  return assert.rejects(call, properties);
}

type SubscribeOptions = { fromPosition?: { commit: bigint; prepare: bigint } | 'end'; filter?: Filter };

/** The messages of a subscription, in order: `confirmation`, `caughtUp`, `checkpoint`, `error …`, or stream and revision. */
export function subscribe(client: EventStoreDBClient, { filter, ...options }: SubscribeOptions) {
  const words: string[] = [];
  /** Commit positions. */
  const checkpoints: bigint[] = [];
  const checkpointReached = async (_: unknown, { commit }: { commit: bigint }) => {
    words.push('checkpoint');
    checkpoints.push(commit);
  };
  const subscription = client.subscribeToAll({
    ...options,
    ...(filter && { filter: { ...filter, checkpointReached } }),
  });
  subscription.on('confirmation', () => words.push('confirmation'));
  subscription.on('caughtUp', () => words.push('caughtUp'));
  subscription.on('error', (error: Error & { type?: string }) =>
    words.push(`error ${error.type ?? error.message}`),
  );
  subscription.on('data', ({ event }: ResolvedEvent) => words.push(`${event?.streamId} ${event?.revision}`));
  return { words, checkpoints, end: () => subscription.unsubscribe() };
}
