// Postgres as a rebuild needs it: one connection with the settings of long statements, and COPY.
import type { Writable } from 'node:stream';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { RebuildStore } from '../../ports/rebuild-store.ts';
import { tableLayout } from './migrations.ts';
import { migrateOnce } from './postgres.ts';
import { begin, lostByError } from './postgres-connection.ts';

/** Connects at the first transaction. */
export function postgresRebuildStore({ url }: { readonly url: string }): RebuildStore<PostgresJsDatabase> {
  const client = postgres(url, { ...SETTINGS, ...lostByError() });
  return {
    disposable: false,
    layout: tableLayout(),
    migrate: () => migrateOnce(url),
    transaction(work, isolation) {
      const options = isolation === undefined ? '' : `isolation level ${isolation}`;
      return begin(client, options, (transaction) => {
        const db = drizzle(withOptions(transaction, client));
        const copy = (table: string, columns: readonly string[], text: string) =>
          copyIn(transaction, table, columns, text);
        return work({ db, copy });
      });
    },
    close: () => client.end({ timeout: 5 }),
  };
}

const SETTINGS = {
  max: 1,
  max_lifetime: null,
  onnotice: () => undefined,
  connect_timeout: 5,
  connection: {
    application_name: 'webhook-relay rebuild',
    statement_timeout: 0,
    // Rows that a crash of the server loses are built again; the flip itself waits for the disk.
    synchronous_commit: 'off',
    enable_seqscan: 'off',
    jit: 'off',
  },
} satisfies postgres.Options<Record<string, never>>;

/** drizzle reads the options of its client; a transaction of postgres.js has none. */
function withOptions(transaction: postgres.TransactionSql, client: postgres.Sql): postgres.Sql {
  return new Proxy(transaction, {
    get: (target, name, receiver) =>
      name === 'options' ? client.options : Reflect.get(target, name, receiver),
  }) as unknown as postgres.Sql;
}

/**
 * Uses the simple protocol: in the extended one a refused row leaves postgres.js 3.4.9 waiting without end. A row refused
 * after the last byte is reported only by the next statement, which fails in the aborted transaction.
 */
async function copyIn(
  transaction: postgres.TransactionSql,
  table: string,
  columns: readonly string[],
  text: string,
): Promise<void> {
  const names = columns.map(quoted).join(', ');
  const stream = await transaction.unsafe(`copy ${quoted(table)} (${names}) from stdin`).writable();
  await sentThrough(stream, text);
  await transaction.unsafe('select 1').catch((cause: unknown) => {
    throw new Error(`rows of ${table} were refused`, { cause });
  });
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Resolves when the copy's end has been sent: nothing may be sent on the connection before. */
function sentThrough(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.once('error', reject);
    const final = stream._final.bind(stream);
    stream._final = (callback) => {
      final(callback);
      resolve();
    };
    void feed(stream, Buffer.from(text)).catch(reject);
  });
}

/** One great write is copied again for each part of it that the socket takes. */
const PART_BYTES = 128 * 1024;

async function feed(stream: Writable, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length && !stream.destroyed; at += PART_BYTES) {
    const part = bytes.subarray(at, at + PART_BYTES);
    await new Promise<void>((resolve) => stream.write(part, () => resolve()));
  }
  if (!stream.destroyed) stream.end();
}
