// What drizzle calls of a client of postgres.js, over sessions: every statement prepared, and transactions that end.
import type postgres from 'postgres';
import { systemCode } from '#src/lib/system-error.ts';
import type { PostgresSessions } from './postgres-sessions.ts';

type Work<T> = (transaction: postgres.Sql) => T | Promise<T>;
type Unsafe = postgres.Sql['unsafe'];
type Given = Parameters<Unsafe>[1];

export class DrizzleClient {
  /** drizzle puts its parsers there. */
  readonly options: PostgresSessions['options'];
  readonly unsafe: Unsafe;
  readonly #sessions: PostgresSessions;

  constructor(sessions: PostgresSessions) {
    this.#sessions = sessions;
    this.options = sessions.options;
    this.unsafe = ((query: string, values: Given) =>
      new Statement(sessions, query, values)) as unknown as Unsafe;
  }

  /** drizzle's types ask for all of postgres.js. */
  get sql(): postgres.Sql {
    return this as unknown as postgres.Sql;
  }

  /**
   * postgres.js 3.4.9 writes to a lost connection, its own commit and rollback too, and that throws where no caller can
   * catch it: under Deno the process would end. So work that lost its connection does not end there: the transaction fails
   * here, and its connection is given up.
   */
  begin<T>(work: Work<T>): Promise<T> {
    return this.#sessions.use(
      (client) =>
        new Promise<T>((resolve, reject) => {
          let over = false;
          const fail = (error: unknown) => {
            over = true;
            reject(error);
          };
          const begun = client.begin(async (transaction) => {
            try {
              const unsafe = prepared(transaction, () => over);
              const value = await work({ unsafe } as postgres.Sql);
              if (!over) return { value };
            } catch (error) {
              if (!over && !isConnectionLost(error)) throw error;
              this.#sessions.giveUp(client);
              fail(error);
            }
            return new Promise<never>(() => undefined);
          });
          begun.then(({ value }) => {
            over = true;
            resolve(value);
          }, fail);
        }),
      true,
    );
  }
}

/** Sent when it is awaited, as those of the driver are. */
class Statement implements PromiseLike<unknown> {
  readonly #sessions: PostgresSessions;
  readonly #query: string;
  readonly #values: Given;
  #asValues = false;

  constructor(sessions: PostgresSessions, query: string, values: Given) {
    this.#sessions = sessions;
    this.#query = query;
    this.#values = values;
  }

  values(): this {
    this.#asValues = true;
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: drizzle awaits it, or its values.
  then<A, B>(
    done?: ((value: unknown) => A | PromiseLike<A>) | null,
    failed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const sent = this.#sessions.use(async (client) => {
      const query = prepared(client)(this.#query, this.#values);
      return this.#asValues ? await query.values() : await query;
    });
    return sent.then(done, failed) as Promise<A | B>;
  }
}

/**
 * drizzle sends every statement by `unsafe`, which postgres.js parses and plans again each time. Our statements are few
 * and fixed: prepared, a point read costs about half.
 */
function prepared(sql: postgres.ISql, isOver: () => boolean = () => false): Unsafe {
  return (query, values) => {
    if (isOver()) throw new Error('the transaction is over');
    return sql.unsafe(query, values, { prepare: true });
  };
}

/** The connection is closed or reset, or its server has said that it closes it. */
const LOST = ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', '57P01', '57P02'];

/** drizzle wraps what the driver threw. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return LOST.includes(systemCode(error) ?? '') || isConnectionLost(error.cause);
}
