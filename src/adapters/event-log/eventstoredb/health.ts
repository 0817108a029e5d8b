// Whether the server accepts events: proven by appends of the service, otherwise by one to a scratch stream.
import { ANY, binaryEvent, type EventStoreDBClient, NO_STREAM } from '@eventstore/db-client';
import type { LogProblem } from '#src/domain/monitoring/health.ts';
import { proven } from '#src/lib/proven.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type EventStoreConnection, LEADER, refusalIn } from './connection.ts';
import type { EventStoreReader } from './read.ts';

const LIMIT_MS = 2000;
/** Within the 30 s of the port; a probe is a stored event. */
const PROOF = { goodMs: 25_000, badMs: 1000 };
/** Its events are not JSON, so they are no part of this log. */
const SCRATCH_STREAM = 'relay-health';
const EMPTY = new Uint8Array();

/** The server answers, and refuses appends: a missing right, a full disk. `unavailable`: it refuses reads too. */
class AcceptsNothing extends Error {
  readonly problem: LogProblem;
  constructor(problem: LogProblem, options: ErrorOptions) {
    super('the server refuses an append', options);
    this.problem = problem;
  }
}

export const probeProblem = (cause: unknown): LogProblem =>
  cause instanceof AcceptsNothing ? cause.problem : 'unavailable';

export function eventStoreHealth(
  connection: EventStoreConnection,
  { page }: Pick<EventStoreReader, 'page'>,
  logger: Logger | undefined,
) {
  let isKeptShort = false;

  /** If the append fails, a read shows whether the server answers at all. */
  async function probe(): Promise<void> {
    const limitMs = Math.min(connection.timeLimitMs, LIMIT_MS);
    const range = { ...LEADER, expectedRevision: ANY, deadline: limitMs } as const;
    const write = connection.call(async (client) => {
      await client.appendToStream(SCRATCH_STREAM, [binaryEvent({ type: 'probe', data: EMPTY })], range);
      keepOne(client);
    }, limitMs);
    const [written, read] = await Promise.allSettled([write, page(null, 'backwards', 1, limitMs)]);
    if (written.status === 'fulfilled') return;
    const options = { cause: written.reason };
    if (read.status === 'fulfilled') throw new AcceptsNothing('not_writable', options);
    throw refusalIn(written.reason.cause) ? new AcceptsNothing('unavailable', options) : written.reason;
  }

  /** Once a process. A server that forbids it keeps every probe until it is scavenged. */
  function keepOne(client: Pick<EventStoreDBClient, 'setStreamMetadata'>): void {
    if (isKeptShort) return;
    isKeptShort = true;
    client
      .setStreamMetadata(SCRATCH_STREAM, { maxCount: 1 }, { expectedRevision: NO_STREAM })
      .catch(() => {});
  }

  return proven({
    ...PROOF,
    probe,
    kindOf: (cause) => (cause instanceof AcceptsNothing ? cause.problem : 'no_answer'),
    changed(failure) {
      // A server that does not answer is reported by the connection.
      if (failure === null || failure.cause instanceof AcceptsNothing)
        logger?.condition('eventLog', failure && probeProblem(failure.cause), {}, failure?.cause);
    },
  });
}
