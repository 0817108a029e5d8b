// PostgreSQL for tests: one server for the whole run, where every test takes a new database; a private server for tests
// that stop it; or the server that TEST_DATABASE_URL names.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { postgresFolder, requirement } from '#test/support/chain/requirements.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';

const given = process.env.TEST_DATABASE_URL;
const folder = postgresFolder();

/** For tests that need a PostgreSQL. Call it at the top of the file. */
export const needsPostgres = () =>
  requirement(
    'PostgreSQL',
    given !== undefined || folder !== null,
    'no initdb and postgres in /usr/lib/postgresql/*/bin or PATH, and no TEST_DATABASE_URL',
  );

/** The environment variable in which the test runner passes its server's URL. */
export const SHARED_POSTGRES = 'RELAY_TEST_POSTGRES';

/** One server for a whole run, for the runner; null if this machine has no PostgreSQL or TEST_DATABASE_URL is set. */
export async function sharedPostgres(): Promise<{ readonly url: string; remove(): Promise<void> } | null> {
  if (given !== undefined || folder === null) return null;
  return privateServer(folder);
}

/** URL of a new database on the server of the whole run; null if there is none. */
export async function sharedDatabase(): Promise<string | null> {
  const url = process.env[SHARED_POSTGRES];
  return url === undefined ? null : newDatabase(url);
}

export type PostgresServer = {
  /** URL of a new, empty database. */
  newDatabase(): Promise<string>;
  /** null if the test must not stop the server. `stop` ends every connection at once. */
  readonly power: { stop(): Promise<void>; start(): Promise<void> } | null;
  /** Ends the server and removes its files. */
  remove(): Promise<void>;
};

/** A server for new databases. `own`: one that this test may stop; `power` is null if TEST_DATABASE_URL is set. */
export async function postgresServer({ own = false } = {}): Promise<PostgresServer> {
  const shared = given ?? (own ? undefined : process.env[SHARED_POSTGRES]);
  if (shared !== undefined)
    return { newDatabase: () => newDatabase(shared), power: null, remove: async () => undefined };
  if (folder === null) throw new Error('this machine has no PostgreSQL');
  return privateServer(folder);
}

const running = new Set<ChildProcess>();
// Also after a test that threw.
process.once('exit', () => {
  for (const server of running) server.kill('SIGQUIT');
});

async function privateServer(programs: string): Promise<PostgresServer & { readonly url: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'relay-postgres-'));
  const root = process.getuid?.() === 0;
  if (root) chownSync(directory, UNPRIVILEGED_UID, UNPRIVILEGED_UID);
  const run = (program: string, args: readonly string[]) => {
    const path = join(programs, program);
    // PostgreSQL refuses to run as root.
    const asUnprivileged = [
      '--reuid',
      `${UNPRIVILEGED_UID}`,
      '--regid',
      `${UNPRIVILEGED_UID}`,
      '--clear-groups',
      path,
      ...args,
    ];
    const options = {
      stdio: 'ignore',
      cwd: directory,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
    } as const;
    return root ? spawn(SETPRIV, asUnprivileged, options) : spawn(path, args, options);
  };
  const data = join(directory, 'data');
  await succeeded(
    run('initdb', ['-D', data, '-U', 'relay', '-A', 'trust', '-E', 'UTF8', '--no-sync']),
    'initdb',
  );
  const port = await fixedPort();
  const settings = [
    // Nothing outlives the run.
    ...['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'autovacuum=off', 'jit=off'],
    ...['wal_level=minimal', 'max_wal_senders=0', 'checkpoint_timeout=1h', 'max_wal_size=4GB'],
    'max_connections=400',
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
  ];
  const url = `postgres://relay@127.0.0.1:${port}/postgres`;
  let server: ChildProcess | null = null;
  const power = {
    async start() {
      const started = run('postgres', ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]);
      server = started;
      running.add(started);
      started.once('exit', () => running.delete(started));
      await answering(url, started);
    },
    async stop() {
      const running = server;
      server = null;
      if (running === null || running.exitCode !== null) return;
      const ended = once(running, 'exit');
      // "Fast" shutdown: open transactions are rolled back, connections closed.
      running.kill('SIGINT');
      await ended;
    },
  };
  await power.start();
  return {
    url,
    newDatabase: () => newDatabase(url),
    power,
    async remove() {
      await power.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const UNPRIVILEGED_UID = 65534;
/** From util-linux, which every Debian has. */
const SETPRIV = 'setpriv';

async function succeeded(child: ChildProcess, name: string): Promise<void> {
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
}

async function answering(url: string, server: ChildProcess): Promise<void> {
  for (let left = 600; left > 0; left--) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`);
    const client = postgres(url, { max: 1, connect_timeout: 1, onnotice: () => undefined });
    const up = await client`select 1`.then(
      () => true,
      () => false,
    );
    await client.end({ timeout: 1 });
    if (up) return;
    await sleep(50);
  }
  throw new Error('postgres does not answer');
}

async function newDatabase(url: string): Promise<string> {
  const name = `relay_${randomUUID().replaceAll('-', '')}`;
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  await client.unsafe(`create database ${name}`);
  await client.end({ timeout: 5 });
  const own = new URL(url);
  own.pathname = `/${name}`;
  return own.href;
}
