// Why a database cannot be used: what its server says, and a pool that lends connections for single transactions.
import postgres from 'postgres';
import { OperatorError } from '#src/lib/operator-error.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { PostgresSessions } from './postgres-sessions.ts';

/** Settings and locks of this service belong to a session: behind such a pool they would be those of others. */
class PooledByTransaction extends OperatorError {
  constructor() {
    super(
      'the database of DATABASE_URL is behind a pool in transaction mode, where the settings of a connection (search_path, timeouts) are lost: name the server itself, or a pool in session mode (PgBouncer: pool_mode = session)',
    );
  }
}

const PID = 'select pg_backend_pid() as pid';

/**
 * Throws `PooledByTransaction` if a second connection gets the server process of the first one, which is idle, or the first
 * one gets another process than before.
 */
export async function demandSessions(first: PostgresSessions, url: string): Promise<void> {
  const second = new PostgresSessions(url, {}, 1);
  try {
    const pids: unknown[] = [];
    for (const sessions of [first, second, first]) pids.push((await sessions.query(PID))[0]?.pid);
    const [before, other, after] = pids;
    if (before === other || before !== after) throw new PooledByTransaction();
  } finally {
    await second.end();
  }
}

/** The server's words or the system's code, without a part of the URL. */
export function refusalOf(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  if (error instanceof postgres.PostgresError)
    return `refused by the server: ${error.message} (${error.code})`;
  if (error instanceof Error && error.cause instanceof Error) return refusalOf(error.cause);
  return systemCode(error) ?? (error instanceof Error ? error.name : typeof error);
}
