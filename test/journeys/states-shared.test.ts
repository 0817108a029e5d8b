// A process over EventStoreDB and PostgreSQL, in demo mode and paid, passes through the states in which no call can be
// executed or a part of it fails.
import assert from 'node:assert/strict';
import { runCli } from '#test/support/cli.ts';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import { type EventStoreServer, startEventStoreServer } from '#test/support/eventstore-server.ts';
import { FORGOTTEN, LOG_DOWN, testStates } from '#test/support/health-state-table.ts';
import { makePaidWorld } from '#test/support/paid-world.ts';
import { needsPostgres } from '#test/support/postgres.ts';

let cluster: Cluster;
/** The server in use: that of the cluster, or the one restored from its backup. */
let log: EventStoreServer;
const logUrl = () => ({ EVENTSTORE_URL: log.url });

testStates('over EventStoreDB and PostgreSQL', {
  needs: needsPostgres(),
  async makeTier(script, settings) {
    const world = await makePaidWorld({ embedded: true, spawning: { script } });
    cluster = await makeCluster('eventstoredb+postgres', { world, ownPostgres: true });
    log = cluster.eventStore ?? assert.fail('no server');
    return {
      paid: world,
      start: (env) => cluster.start({ ...settings, ...env, ...logUrl() }),
      keyFile: cluster.env.SIGNING_KEYS_FILE ?? '',
      get env() {
        return { ...cluster.env, ...logUrl() };
      },
      async end() {
        await cluster.end();
        await log.end();
      },
    };
  },
  states: (it) => [
    {
      name: 'the event log’s server accepts connections and does not answer',
      made: 'running',
      make: () => log.faults.freeze(),
      seen: {
        ...LOG_DOWN,
        logged: { level: 'warn', msg: /the event log does not answer/, cause: /no answer|deadline/i },
      },
      repaired: 'running',
      repair: () => log.faults.thaw(),
    },
    {
      name: 'PostgreSQL is down',
      made: 'running',
      make: () => cluster.postgres.power?.stop(),
      seen: {
        status: 200,
        part: 'readModels',
        reason: 'unavailable',
        message: /reads answer 503, calls are executed/,
        alert: 'RelayReadModelsDown',
        logged: { level: 'warn', msg: /read models/, cause: /ECONNREFUSED|CONNECTION_|57P0/ },
        call: [200],
      },
      repaired: 'running',
      repair: () => cluster.postgres.power?.start(),
    },
    {
      name: 'acknowledged events are missing: an older backup, which PostgreSQL contradicts',
      made: 'stopped',
      async make() {
        const backup = [...log.events];
        const service = await it.start();
        await it.coveredCall(service);
        await service.kill();
        const restored = await startEventStoreServer({ backup });
        await log.end();
        log = restored;
      },
      seen: FORGOTTEN,
      repaired: 'stopped',
      // The operator accepts the loss, as the operating guide says.
      async repair() {
        const { code, stderr } = await runCli(['rebuild', '--prune'], {
          env: { ...cluster.env, ...logUrl() },
        });
        assert.deepEqual([code, stderr], [0, '']);
      },
    },
  ],
});
