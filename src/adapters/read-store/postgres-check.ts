// What a database offers to the service, asked without changing it: for the operator's doctor.
import { OperatorError } from '#src/lib/operator-error.ts';
import { withTimeout } from '#src/lib/time.ts';
import { isMigrated } from './migrations.ts';
import { SETTINGS } from './postgres.ts';
import { demandSessions, refusalOf } from './postgres-refusals.ts';
import { PostgresSessions } from './postgres-sessions.ts';

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

const TIMEOUT_MS = 5000;

/** As the service connects, with its settings. `failure`: without a part of the URL. Never throws. */
export async function databaseFacts(url: string): Promise<DatabaseFacts | { readonly failure: string }> {
  const sessions = new PostgresSessions(url, SETTINGS, 1);
  try {
    await withTimeout(sessions.query('select 1'), TIMEOUT_MS, () => new Late());
    await demandSessions(sessions, url);
    const lost = await lostSetting(sessions);
    if (lost !== null) return { failure: `its server or a pool in front does not keep the setting ${lost}` };
    const since = Date.now();
    const [row] = await sessions.query(`
      select current_setting('server_version') as version,
        current_setting('transaction_read_only') = 'on' as read_only,
        has_database_privilege(current_database(), 'CREATE') as schemas,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as tables,
        extract(epoch from clock_timestamp()) * 1000 as now`);
    const half = (Date.now() - since) / 2;
    if (row === undefined) return { failure: 'it answers without a row' };
    return {
      version: String(row.version).split(' ')[0] ?? '',
      isReadOnly: row.read_only === true,
      mayCreateSchemas: row.schemas === true,
      mayCreateTables: row.tables === true,
      isMigrated: await isMigrated((query) => sessions.query(query)),
      skewMs: Number(row.now) - (since + half),
    };
  } catch (error) {
    return { failure: refusalOf(error) };
  } finally {
    await sessions.end();
  }
}

class Late extends OperatorError {
  constructor() {
    super(`no answer within ${TIMEOUT_MS / 1000} s`);
  }
}

/** The name of a setting that a later statement of the connection does not have; null: it has all. */
async function lostSetting(sessions: PostgresSessions): Promise<string | null> {
  for (const [name, value] of Object.entries(SETTINGS)) {
    const [row] = await sessions.query(
      `select setting from pg_settings where name = '${name}' and setting <> '${value}'`,
    );
    if (row !== undefined) return name;
  }
  return null;
}
