// What a database offers to the service, asked without changing it: for the operator's doctor.
import postgres from 'postgres';
import { systemCode } from '#src/lib/system-error.ts';
import { isMigrated } from './migrations.ts';
import { lostByError } from './postgres-connection.ts';

export type DatabaseFacts = {
  readonly version: string;
  readonly isReadOnly: boolean;
  readonly mayCreateSchemas: boolean;
  /** In the schema that unqualified names are created in. */
  readonly mayCreateTables: boolean;
  /** The tables that all releases share exist. */
  readonly isMigrated: boolean;
  /** The database's clock minus ours; half of the exchange's time is not counted. */
  readonly skewMs: number;
};

const TIMEOUT_S = 5;

/** `failure`: the server's words or the system's code, without a part of the URL. Never throws. */
export async function databaseFacts(url: string): Promise<DatabaseFacts | { readonly failure: string }> {
  const client = postgres(url, {
    ...lostByError(),
    max: 1,
    connect_timeout: TIMEOUT_S,
    onnotice: () => undefined,
  });
  try {
    await client`select 1`;
    const since = Date.now();
    const [row] = await client`
      select current_setting('server_version') as version,
        current_setting('transaction_read_only') = 'on' as read_only,
        has_database_privilege(current_database(), 'CREATE') as schemas,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as tables,
        extract(epoch from clock_timestamp()) * 1000 as now`;
    const half = (Date.now() - since) / 2;
    if (row === undefined) return { failure: 'it answers without a row' };
    return {
      version: String(row.version).split(' ')[0] ?? '',
      isReadOnly: row.read_only === true,
      mayCreateSchemas: row.schemas === true,
      mayCreateTables: row.tables === true,
      isMigrated: await isMigrated(async (query) => await client.unsafe(query)),
      skewMs: Number(row.now) - (since + half),
    };
  } catch (error) {
    return { failure: failureOf(error) };
  } finally {
    await client.end({ timeout: 1 }).catch(() => undefined);
  }
}

function failureOf(error: unknown): string {
  if (error instanceof postgres.PostgresError) return `${error.message} (${error.code})`;
  return systemCode(error) ?? (error instanceof Error ? error.name : typeof error);
}
