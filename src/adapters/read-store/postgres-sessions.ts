// Connections to PostgreSQL, each with the settings of this service: made by SET after connecting, since PgBouncer refuses
// startup parameters. A connection that is lost is given up with its settings; postgres.js 3.4.9 would open it again without
// them, and can leave one that was cut in the middle of a write unable to write.
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import postgres from 'postgres';
import { type PostgresUrl, readPostgresUrl } from '#src/lib/postgres-url.ts';

export type SessionSettings = Readonly<Record<string, string | number>>;

type Session = {
  readonly client: postgres.Sql;
  /** Resolves when it is connected and set. */
  readonly ready: Promise<unknown>;
  /** Work that has it. */
  users: number;
  exclusive: boolean;
};
type Waiting = { readonly exclusive: boolean; take(session: Session): void; fail(error: Error): void };
type Parsers = Pick<postgres.Sql['options'], 'parsers' | 'serializers'>;

/** Statements that one connection has in flight: beyond 100 the driver keeps them for a connection that it opens again. */
const PIPELINED = 50;
const CLOSE_S = 5;
const CONNECT_S = 2;

export class PostgresSessions {
  /** Of every connection; drizzle puts its own there. */
  readonly options: Parsers = { parsers: {}, serializers: {} } as Parsers;
  readonly #url: PostgresUrl;
  readonly #settings: SessionSettings;
  readonly #most: number;
  readonly #open = new Set<Session>();
  readonly #ending = new Set<Promise<void>>();
  #waiting: Waiting[] = [];
  #ended = false;

  /** `most`: connections. Nothing is opened before it is used. */
  constructor(url: string, settings: SessionSettings, most: number) {
    const read = readPostgresUrl(url);
    if ('problem' in read) throw new Error(`the URL of the database ${read.problem}`);
    this.#url = read;
    this.#settings = settings;
    this.#most = most;
  }

  /** `exclusive`: no one else has the connection until the work ends, for transactions and locks. */
  async use<T>(work: (client: postgres.Sql) => Promise<T>, exclusive = false): Promise<T> {
    const session = await this.#take(exclusive);
    try {
      await session.ready;
      return await work(session.client);
    } finally {
      session.users--;
      if (exclusive) session.exclusive = false;
      this.#assign();
    }
  }

  query(text: string): Promise<postgres.RowList<postgres.Row[]>> {
    return this.use(async (client) => await client.unsafe(text));
  }

  /** The connection is not used again. */
  giveUp(client: postgres.Sql): void {
    for (const session of this.#open) if (session.client === client) this.#drop(session);
  }

  /** After the work in flight, if that does not take long. */
  async end(): Promise<void> {
    this.#ended = true;
    for (const { fail } of this.#waiting.splice(0)) fail(new SessionsEnded());
    for (const session of this.#open) this.#drop(session);
    await Promise.all(this.#ending);
  }

  #take(exclusive: boolean): Promise<Session> {
    if (this.#ended) return Promise.reject(new SessionsEnded());
    return new Promise((take, fail) => {
      this.#waiting.push({ exclusive, take, fail });
      this.#assign();
    });
  }

  /** In their order: exclusive work gets its connection when the others before it have ended. */
  #assign(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const session = this.#choose(next.exclusive);
      if (session === null) return;
      this.#waiting.shift();
      session.users++;
      session.exclusive = next.exclusive;
      next.take(session);
    }
  }

  #choose(exclusive: boolean): Session | null {
    let least: Session | null = null;
    for (const session of this.#open)
      if (!session.exclusive && (least === null || session.users < least.users)) least = session;
    if (least?.users === 0) return least;
    if (this.#open.size < this.#most) return this.#connect();
    return exclusive || least === null || least.users >= PIPELINED ? null : least;
  }

  #connect(): Session {
    const client = postgres(this.#url.bare, {
      ...driverOptions(this.#url),
      ...lostByError(),
      max: 1,
      onnotice: () => undefined,
      // By default a connection is closed about every half hour; here a closed connection is a lost one.
      max_lifetime: null,
      onclose: () => this.#drop(session),
    });
    Object.assign(client.options.parsers, this.options.parsers);
    Object.assign(client.options.serializers, this.options.serializers);
    const statements = Object.entries(this.#settings).map(([name, value]) => `set ${name} = ${value}`);
    const ready = (async () => {
      // Several statements in one, by the simple protocol.
      await client.unsafe([...statements, 'select 1'].join('; '));
    })();
    const session: Session = { client, ready, users: 0, exclusive: false };
    ready.catch(() => this.#drop(session));
    this.#open.add(session);
    return session;
  }

  #drop(session: Session): void {
    if (!this.#open.delete(session)) return;
    const gone = session.client
      .end({ timeout: CLOSE_S })
      .catch(() => undefined)
      .finally(() => this.#ending.delete(gone));
    this.#ending.add(gone);
    if (!this.#ended) this.#assign();
  }
}

/** Has the code that the driver gives to a client that was ended. */
class SessionsEnded extends Error {
  readonly code = 'CONNECTION_ENDED';
  constructor() {
    super('the connections to the database are closed');
  }
}

/** What the URL demands, as the driver takes it. PgBouncer accepts the name of the application at the start. */
function driverOptions(url: PostgresUrl): postgres.Options<Record<string, never>> {
  const { host, applicationName, connectTimeoutS, targetSessionAttrs, options } = url;
  const ssl = tlsOptions(url);
  return {
    connect_timeout: connectTimeoutS ?? CONNECT_S,
    connection: {
      application_name: applicationName ?? 'webhook-relay',
      ...(options === null ? {} : { options }),
    },
    ...(host === null ? {} : { host }),
    ...(ssl === null ? {} : { ssl }),
    ...(targetSessionAttrs === null ? {} : { target_session_attrs: targetSessionAttrs }),
  };
}

/** null: as the driver does without one. */
function tlsOptions({
  tls,
  rootCert,
  cert,
  key,
}: PostgresUrl): NonNullable<postgres.Options<Record<string, never>>['ssl']> | null {
  if (tls === null) return null;
  if (tls === 'disable') return false;
  const files = {
    ...(rootCert === null ? {} : { ca: readFileSync(rootCert) }),
    ...(cert === null ? {} : { cert: readFileSync(cert) }),
    ...(key === null ? {} : { key: readFileSync(key) }),
  };
  if (tls === 'verify-full') return files;
  if (tls === 'verify-ca') return { ...files, checkServerIdentity: () => undefined };
  if (cert === null) return tls;
  return { ...files, rejectUnauthorized: false };
}

/** The arguments that postgres.js passes when it opens a socket. */
type Place = Pick<postgres.ParsedOptions, 'host' | 'port'> & { readonly path: string | false };

type LossOptions = { readonly fetch_types: false; readonly socket: (place: Place) => Socket };

/**
 * postgres.js 3.4.9 waits without end for a connection that is accepted and closed before authentication, and retries
 * without a pause: a proxy or a balancer whose server is unavailable behaves like this. An error reaches the caller.
 * The driver also queries each connection for array types, and throws outside of every promise if the connection is
 * lost meanwhile; drizzle reads arrays without that query.
 *
 * @returns for the options of one client, whose types leave `socket` out; hosts take turns. A query cannot be cancelled
 *   then: the server's answer to that is to end the connection.
 */
function lostByError(): LossOptions {
  let turn = 0;
  return {
    fetch_types: false,
    socket({ path, host, port }) {
      const at = turn++ % host.length;
      const name = host[at] ?? '';
      // The driver reads the name to check the certificate against.
      const socket = Object.assign(new Socket(), { host: name });
      socket.on('end', () => socket.destroy(new ConnectionEnded()));
      return path ? socket.connect(path) : socket.connect(port[at] ?? 5432, name);
    },
  };
}

/** Has the code that the driver gives to a closed connection. */
class ConnectionEnded extends Error {
  readonly code = 'CONNECTION_CLOSED';
  constructor() {
    super('the connection was ended by its other side');
  }
}
