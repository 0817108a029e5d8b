// A deployment of equal processes for journeys, in one of the two upper tiers: the real service several times over one
// log and one PostgreSQL, beside a TLS target of its own.
import { join } from 'node:path';
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { type EventStoreServer, startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { allOf, recordedIn } from '#test/support/world/service-log.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';
import type { Environment, Service } from './service.ts';
import type { TlsTargetOptions } from './tls-target.ts';

export const TIERS = ['sqlite+postgres', 'eventstoredb+postgres'] as const;
/** As the trust summary calls the storage. */
export type Tier = (typeof TIERS)[number];

export type ClusterOptions = TlsTargetOptions & {
  /** Where the target and the rest of the environment come from; the cluster ends it, too. */
  readonly world?: World;
  /** A fresh server to use instead of the in-repo one. */
  readonly eventStoreUrl?: string;
  /** A server that the test may stop, instead of the run's. */
  readonly ownPostgres?: boolean;
};

/** One of the processes. `name`: as PostgreSQL knows its connections. */
export type Member = Service & { readonly name: string };

export type Cluster = {
  readonly world: World;
  readonly postgres: PostgresServer;
  /** null in the tier of one machine, and where the server was given. */
  readonly eventStore: EventStoreServer | null;
  /** What each process gets. */
  readonly env: Environment;
  /** One more process, ended by `end` where the test has not. */
  start(env?: Environment): Promise<Member>;
  /** All events of the log in global order. */
  recorded(): Promise<RecordedEvent[]>;
  end(): Promise<void>;
};

export async function makeCluster(tier: Tier, options: ClusterOptions = {}): Promise<Cluster> {
  const postgres = await postgresServer({ own: options.ownPostgres ?? false });
  const world = options.world ?? (await makeWorld({ ...options, embedded: true }));
  const onServer = tier === 'eventstoredb+postgres';
  const eventStore = onServer && options.eventStoreUrl === undefined ? await startEventStoreServer() : null;
  const eventStoreUrl = eventStore?.url ?? options.eventStoreUrl ?? '';
  const DATABASE_URL = await postgres.newDatabase();
  const env: Record<string, string> = { DATABASE_URL };
  if (onServer) {
    const keys = join(world.folder, 'keys', 'keys.json');
    createKeyFile(keys);
    Object.assign(env, { EVENTSTORE_URL: eventStoreUrl, SIGNING_KEYS_FILE: keys });
  }
  let started = 0;
  return {
    world,
    postgres,
    eventStore,
    env: { ...world.env, ...env },
    async start(more = {}) {
      const name = `relay_${++started}`;
      const url = `${DATABASE_URL}?application_name=${name}`;
      return { ...(await world.start({ ...env, DATABASE_URL: url, ...more })), name };
    },
    async recorded() {
      if (!onServer) return recordedIn(world.dataDir);
      return allOf(eventStoreDbEventLog({ url: eventStoreUrl }));
    },
    async end() {
      await world.end();
      await eventStore?.end();
      await postgres.remove();
    },
  };
}
