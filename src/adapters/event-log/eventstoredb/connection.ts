// The package's client on one gRPC channel, which is replaced when it leads to no answer or to a node that is not the leader.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import {
  ErrorType,
  EventStoreDBClient,
  isCommandError,
  type ResolvedEvent,
  type StreamingRead,
} from '@eventstore/db-client';
import { Channel, credentials } from '@grpc/grpc-js';
import { lazily } from '#src/lib/lazily.ts';
import { withTimeout } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type ServerEvent, serverEvent } from './events.ts';
import type { EventStoreSettings } from './url.ts';

/** Errors that state a result. Any other is transient: the class of an error during an outage differs per runtime. */
const RESULTS: readonly unknown[] = [
  ErrorType.WRONG_EXPECTED_VERSION,
  ErrorType.STREAM_NOT_FOUND,
  ErrorType.STREAM_DELETED,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
];

const NO_ANSWERS: readonly unknown[] = [ErrorType.UNAVAILABLE, ErrorType.DEADLINE_EXCEEDED];

/** Each call has its own timer, because the client's deadlines do not fire while a server is frozen. */
const noAnswer = (ms: number) => new Error(`no answer within ${ms} ms`);

/** What the server answered instead of a result; null: nothing. */
export const refusalIn = (error: unknown) =>
  error instanceof Error && isCommandError(error) && !NO_ANSWERS.includes(error.type) ? error : null;

export const LEADER = { requiresLeader: true };

export type EventStoreConnection = ReturnType<typeof eventStoreConnection>;

type ConnectionOptions = {
  readonly timeLimitMs: number;
  /** Called with each `EventLogUnavailable` that a call throws. */
  readonly failed: (cause: EventLogUnavailable) => void;
  readonly logger: Logger | undefined;
};

/** Its calls throw the package's error if it is one of `RESULTS`, and otherwise `EventLogUnavailable`. */
export function eventStoreConnection(
  settings: EventStoreSettings,
  { timeLimitMs, failed, logger }: ConnectionOptions,
) {
  let current = new Client(settings);
  const running = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let answers = true;

  function report(isAnswer: boolean, cause?: unknown): void {
    if (isAnswer !== answers) logger?.condition('eventLog', isAnswer ? null : 'unavailable', {}, cause);
    answers = isAnswer;
  }

  /** Calls and subscriptions on the old channel end; the next call opens a new one. */
  function replace(old: Client, settings: EventStoreSettings): void {
    if (old !== current) return;
    current = new Client(settings);
    old.closeChannel();
  }

  function assertOpen(): void {
    if (closing.signal.aborted)
      throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
  }

  async function call<T>(run: (client: Client) => Promise<T>): Promise<T> {
    assertOpen();
    const client = current;
    // The client may also throw before it returns a promise.
    const answer = (async () => await run(client))();
    running.add(answer);
    try {
      const result = await answer;
      report(true);
      return result;
    } catch (error) {
      const refusal = refusalIn(error);
      report(refusal !== null, error);
      if (RESULTS.includes(refusal?.type)) throw error;
      if (refusal === null) replace(client, settings);
      else if (refusal.type === ErrorType.NOT_LEADER)
        replace(client, { ...settings, hosts: [refusal.leader], discover: false });
      const unavailable = new EventLogUnavailable({ cause: error });
      failed(unavailable);
      throw unavailable;
    } finally {
      running.delete(answer);
    }
  }

  return {
    timeLimitMs,
    call: <T>(run: (client: Client) => Promise<T>, limitMs = timeLimitMs): Promise<T> =>
      call((client) => withTimeout(run(client), limitMs, () => noAnswer(limitMs))),
    /** All events of a read. The time limit restarts with each event. */
    read: (open: (client: Client) => StreamingRead<ResolvedEvent>, limitMs = timeLimitMs) =>
      call((client) => collect(open(client), limitMs)),
    /** For a subscription. */
    client: () => current,
    assertOpen,
    /** Aborts when `close` begins. */
    closing: closing.signal,
    /** Waits for the calls in progress, and frees the channel. */
    close: lazily(async () => {
      closing.abort();
      await Promise.allSettled(running);
      await current.dispose();
      current.closeChannel();
    }),
  };
}

async function collect(stream: StreamingRead<ResolvedEvent>, limitMs: number): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  const timer = setTimeout(() => {
    stream.destroy(noAnswer(limitMs));
    stream.cancel().catch(() => {});
  }, limitMs);
  // It may also fail after its end.
  stream.on('error', () => {});
  try {
    for await (const resolved of stream) {
      timer.refresh();
      const event = serverEvent(resolved);
      if (event !== null) events.push(event);
    }
    return events;
  } finally {
    clearTimeout(timer);
  }
}

/** The client with its own channel: the package's channel accepts no options, and ends all calls when one is cancelled. */
class Client extends EventStoreDBClient {
  readonly #tls: EventStoreSettings['tls'];
  /** null: discover the leader. */
  readonly #node: string | null;
  #channel: Promise<Channel> | null = null;
  readonly #left = new AbortController();
  /** Aborts when the channel is closed, which does not end its open streams. */
  readonly left = this.#left.signal;

  constructor({ hosts, discover, tls, credentials }: EventStoreSettings) {
    super(
      {
        endpoints: [...hosts],
        connectionName: 'relay',
        maxDiscoverAttempts: 1,
        // For one host, so that the next one is reached within a call's time limit.
        gossipTimeout: 1,
      },
      { insecure: tls === null, ...(tls?.ca && { rootCertificate: tls.ca }) },
      credentials ?? undefined,
    );
    const [{ address, port }] = hosts;
    this.#tls = tls;
    this.#node = discover ? null : `${address}:${port}`;
  }

  /** null: the server does not state it. */
  async version(): Promise<string | null> {
    const { serverVersion } = await this.capabilities;
    return /^\d/.test(serverVersion) ? serverVersion : null;
  }

  /** false: each append is a unary call. Batches share one table of results among all clients of the process. */
  protected override supports = async () => false;

  protected override getChannel = (): Promise<Channel> => {
    this.#channel ??= this.#open();
    return this.#channel;
  };

  async #open(): Promise<Channel> {
    const secure = this.#tls && credentials.createSsl(this.#tls.ca);
    return new Channel(this.#node ?? (await this.resolveUri()), secure ?? credentials.createInsecure(), {
      'grpc.keepalive_time_ms': 10_000,
      'grpc.keepalive_timeout_ms': 10_000,
      // The largest event that a server stores is 16 MB.
      'grpc.max_receive_message_length': 17 * 1024 * 1024,
      // A new channel opens a new connection and does not reuse the one that hangs.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.service_config_disable_resolution': 1,
      'grpc.enable_http_proxy': 0,
    });
  }

  /** Not in the current turn of the event loop: a call may be about to use the channel. */
  closeChannel(): void {
    this.#left.abort();
    this.#channel?.then(
      (channel) => setImmediate(() => channel.close()),
      () => {},
    );
  }
}
