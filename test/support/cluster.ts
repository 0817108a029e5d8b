// A deployment of equal processes for journeys, in one of the two upper tiers: the real service several times over one
// log and one PostgreSQL, beside a TLS target of its own.
import { join } from 'node:path';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { type EventStoreServer, startEventStoreServer } from './eventstore-server.ts';
import { type PostgresServer, postgresServer } from './postgres.ts';
import type { Environment, Service } from './service.ts';
import { makeWorld, type World } from './service-world.ts';
import type { TlsTargetOptions } from './tls-target.ts';

export const TIERS = ['sqlite+postgres', 'eventstoredb+postgres'] as const;
/** As the trust summary calls the storage. */
export type Tier = (typeof TIERS)[number];

export type Cluster = {
  readonly world: World;
  readonly postgres: PostgresServer;
  /** null in the tier of one machine. */
  readonly eventStore: EventStoreServer | null;
  /** What each process gets. */
  readonly env: Environment;
  /** One more process, ended by `end` where the test has not. */
  start(env?: Environment): Promise<Service>;
  end(): Promise<void>;
};

export async function makeCluster(tier: Tier, options: TlsTargetOptions = {}): Promise<Cluster> {
  const postgres = await postgresServer();
  const world = await makeWorld(options);
  const eventStore = tier === 'eventstoredb+postgres' ? await startEventStoreServer() : null;
  const env: Record<string, string> = { DATABASE_URL: await postgres.newDatabase() };
  if (eventStore !== null) {
    const keys = join(world.folder, 'keys', 'keys.json');
    createKeyFile(keys);
    Object.assign(env, { EVENTSTORE_URL: eventStore.url, SIGNING_KEYS_FILE: keys });
  }
  return {
    world,
    postgres,
    eventStore,
    env: { ...world.env, ...env },
    start: (more = {}) => world.start({ ...env, ...more }),
    async end() {
      await world.end();
      await eventStore?.end();
      await postgres.remove();
    },
  };
}
