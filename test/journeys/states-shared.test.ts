// A process over EventStoreDB and PostgreSQL, in demo mode and paid, passes through the states in which no call can be
// executed or a part of it fails.
import assert from 'node:assert/strict';
import { type EventStoreServer, startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { FORGOTTEN, LOG_DOWN, testStates } from '#test/support/world/health-state-table.ts';
import { makePaidWorld } from '#test/support/world/paid-world.ts';
import { type ErrorBody, execute } from '#test/support/world/service-world.ts';

const KNOWN = 'known';

let cluster: Cluster;
/** The server in use: that of the cluster, or the one restored from its backup. */
let log: EventStoreServer;
const logUrl = () => ({ EVENTSTORE_URL: log.url });

/** The claim on the known key is no JSON any more, or again; no read but that of a repeat and of the scrub needs it. */
function flipClaim(): void {
  const [claim = assert.fail('no claim')] = log.events.filter(({ type }) => type === 'IdempotencyKeyClaimed');
  claim.data[0] = (claim.data[0] ?? 0) ^ 1;
}

testStates('over EventStoreDB and PostgreSQL', {
  needs: needsPostgres(),
  holdStarts() {
    log.faults.refuseType('JobStarted', true);
    return () => log.faults.refuseType('JobStarted', false);
  },
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
      isFullOnly: true,
      made: 'running',
      make: () => log.faults.freeze(),
      seen: {
        ...LOG_DOWN,
        logged: { level: 'warn', msg: /the event log does not answer/i, cause: /no answer|deadline/i },
      },
      repaired: 'running',
      repair: () => log.faults.thaw(),
    },
    {
      name: 'the event log’s server answers reads and refuses every append',
      made: 'running',
      make: () => log.faults.refuseAppends(Number.POSITIVE_INFINITY),
      seen: {
        ...LOG_DOWN,
        reason: 'not_writable',
        message: /accepts no events: no call is executed/,
        logged: {
          level: 'error',
          msg: /The event log accepts no events: no call is executed/,
          cause: /refuses an append.*time-?out/i,
        },
      },
      repaired: 'running',
      repair: () => log.faults.refuseAppends(0),
    },
    {
      name: 'an event that the server has stored is damaged; after the restart only the scrub reads it',
      made: 'stopped',
      async make() {
        const service = await it.start();
        const known = { url: it.target.url('/known'), idempotencyKey: KNOWN };
        assert.equal((await execute(service, known)).status, 200);
        flipClaim();
        const { status, body } = await execute(service, known);
        assert.deepEqual([status, (body as Partial<ErrorBody>).error?.code], [503, 'event_log_unavailable']);
        await service.kill();
      },
      seen: {
        status: 200,
        part: 'eventLog',
        reason: 'damaged_events',
        message: /^1 event cannot be read as it was written: revision 0 of stream claim-/,
        alert: 'RelayEventsDamaged',
        logged: { level: 'error', msg: /^the event log has damage: what needs it fails/ },
        call: [200],
      },
      repaired: 'stopped',
      repair: flipClaim,
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
        logged: { level: 'warn', msg: /read models/, cause: /ECONNREFUSED|ECONNRESET|CONNECTION_|57P0/ },
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
      // The operator accepts the loss, as the runbook says.
      async repair() {
        const { code, stderr } = await runCli(['rebuild', '--prune'], {
          env: { ...cluster.env, ...logUrl() },
        });
        assert.deepEqual([code, stderr], [0, '']);
      },
    },
  ],
});
