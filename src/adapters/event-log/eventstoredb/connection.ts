// The package's client on one gRPC channel. It is replaced if the channel hangs or leads to a node that is not the leader.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import {
  EventStoreDBClient,
  isCommandError,
  MaxAppendSizeExceededError,
  NotLeaderError,
  type ResolvedEvent,
  StreamDeletedError,
  type StreamingRead,
  StreamNotFoundError,
  UnavailableError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { Channel, type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { EventStoreSettings, Host } from './url.ts';

export type EventStoreConnection = {
  /**
   * Runs one call. Throws the package's errors that state a result (wrong revision, no such stream, deleted stream,
   * append too large); any other failure is transient and throws `EventLogUnavailable`.
   */
  call<T>(run: (client: Client) => Promise<T>): Promise<T>;
  /** The client for a subscription. Throws `EventLogUnavailable` after `close`. */
  client(): Client;
  /** Ends open calls and frees the channel. */
  close(): Promise<void>;
};

/** Any other error is transient: the class of an error during an outage differs per runtime. */
const RESULTS = [
  WrongExpectedVersionError,
  StreamNotFoundError,
  StreamDeletedError,
  MaxAppendSizeExceededError,
];

/** Each call has its own timer, because the client's deadlines do not fire while a server is frozen. */
export class NoAnswer extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
    this.name = 'NoAnswer';
  }
}

export function eventStoreConnection(
  settings: EventStoreSettings,
  { timeLimitMs, logger }: { readonly timeLimitMs: number; readonly logger?: Logger },
): EventStoreConnection {
  let current = new Client(settings, timeLimitMs, null);
  let unavailable = false;
  let closed = false;

  /** Calls on the old channel end with errors; the next call opens a new one. */
  function replace(old: Client, leader: Host | null): void {
    if (old !== current) return;
    current = new Client(settings, timeLimitMs, leader);
    old.closeChannel();
  }

  function failed(error: unknown, client: Client): EventLogUnavailable {
    const unreachable =
      error instanceof UnavailableError || !(error instanceof Error && isCommandError(error));
    if (error instanceof NotLeaderError) replace(client, error.leader);
    else if (error instanceof NoAnswer || (unreachable && (settings.discover || client.leader !== null))) {
      replace(client, null);
    }
    if (!closed && !unavailable) logger?.warn('the event log does not answer', { cause: error });
    unavailable = true;
    return new EventLogUnavailable({ cause: error });
  }

  function answered(): void {
    if (unavailable) logger?.info('the event log answers again');
    unavailable = false;
  }

  function client(): Client {
    if (closed) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
    return current;
  }

  return {
    client,
    async call(run) {
      const used = client();
      try {
        const result = await run(used);
        answered();
        return result;
      } catch (error) {
        if (!RESULTS.some((Result) => error instanceof Result)) throw failed(error, used);
        answered();
        throw error;
      }
    },
    async close() {
      closed = true;
      await current.dispose();
      current.closeChannel();
    },
  };
}

/** The client with its own channel: the package's channel accepts no options and shares connections. */
export class Client extends EventStoreDBClient {
  readonly leader: Host | null;
  /** null: discover the leader. */
  readonly #target: string | null;
  readonly #credentials: ChannelCredentials;
  readonly #options: Readonly<Record<string, number>>;
  #channel: Promise<Channel> | null = null;

  /** `leader`: the node that another node reported as leader; replaces the hosts of the settings. */
  constructor(settings: EventStoreSettings, timeLimitMs: number, leader: Host | null) {
    const { hosts, tls, connectionName } = settings;
    super(
      {
        endpoints: [...hosts],
        connectionName,
        maxDiscoverAttempts: 1,
        // Seconds per host, so that discovery reaches the next host within a call's time limit.
        gossipTimeout: Math.max(1, Math.floor(timeLimitMs / 1000 / (hosts.length + 1))),
      },
      {
        insecure: tls === null,
        ...(tls?.ca && { rootCertificate: tls.ca }),
        ...(tls?.user && { userKeyFile: tls.user.key, userCertFile: tls.user.cert }),
      },
      settings.credentials ?? undefined,
    );
    const node = leader ?? (settings.discover ? undefined : hosts[0]);
    this.#target = node === undefined ? null : `${node.address}:${node.port}`;
    this.leader = leader;
    this.#credentials =
      tls === null
        ? credentials.createInsecure()
        : credentials.createSsl(tls.ca, tls.user?.key ?? null, tls.user?.cert ?? null);
    this.#options = channelOptions(settings);
  }

  /** false: each append is a unary call. Batches share one table of results among all clients of the process. */
  protected override supports = async () => false;

  protected override getChannel = (): Promise<Channel> => {
    this.#channel ??= this.#open().catch((error: unknown) => {
      this.#channel = null;
      throw error;
    });
    return this.#channel;
  };

  async #open(): Promise<Channel> {
    return new Channel(this.#target ?? (await this.resolveUri()), this.#credentials, this.#options);
  }

  /** Not in the current turn of the event loop: a call may be about to use the channel. */
  closeChannel(): void {
    this.#channel?.then(
      (channel) => setImmediate(() => channel.close()),
      () => {},
    );
  }
}

function channelOptions({ keepAliveMs, keepAliveTimeoutMs }: EventStoreSettings) {
  return {
    'grpc.keepalive_time_ms': keepAliveMs,
    'grpc.keepalive_timeout_ms': keepAliveTimeoutMs,
    // The largest event that a server stores is 16 MB.
    'grpc.max_receive_message_length': 17 * 1024 * 1024,
    // By default the pause between two connection attempts grows to two minutes.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    // A new channel opens a new connection and does not reuse the one that hangs.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
    'grpc.enable_http_proxy': 0,
  };
}

/** All events of a read. The time limit restarts with each event. */
export function collect<E extends ResolvedEvent, T>(
  stream: StreamingRead<E>,
  limitMs: number,
  convert: (resolved: E) => T | null,
): Promise<T[]> {
  return new Promise((resolve, reject) => {
    const items: T[] = [];
    const late = () => {
      reject(new NoAnswer(limitMs));
      stream.cancel().catch(() => {});
    };
    const timer = setTimeout(late, limitMs);
    stream.on('data', (resolved: E) => {
      timer.refresh();
      const item = convert(resolved);
      if (item !== null) items.push(item);
    });
    stream.on('end', () => {
      clearTimeout(timer);
      resolve(items);
    });
    stream.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}
