// The way to the server: one gRPC channel, calls that end in our own time whatever the server does, and a new channel
// after one that went dumb. Leaves to others: what is asked (eventstoredb-messages.ts) and what the answers mean.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { AppendReq, AppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { faultOf, type Target, transport } from './transport.ts';
import type { EventStoreSettings } from './url.ts';

export type EventStoreConnection = {
  /** Throws `Refusal`, or `EventLogUnavailable` where the fate is unknown. */
  append(requests: readonly AppendReq[]): Promise<AppendResp>;
  /** Hands each answer to `take`, in order; resolves after the last. The limit counts anew with each. Throws as above. */
  read(request: ReadReq, take: (response: ReadResp) => void, limitMs?: number): Promise<void>;
  /** Calls `notice` for each message of an endless read, unread. `ended` resolves when it is over, for any reason. */
  listen(request: ReadReq, notice: () => void): { readonly ended: Promise<void>; cancel(): void };
  /** Ends all calls and frees the channel. */
  close(): Promise<void>;
};

/** The server understood the call and will not do it; a repeat meets the same. */
export class Refusal extends Error {
  /** The server's own word. */
  readonly reason: string;
  constructor(reason: string, cause: unknown) {
    super(`the event store refused: ${reason}`, { cause });
    this.name = 'Refusal';
    this.reason = reason;
  }
}

/** By ourselves: it says nothing of the server. */
class Cancelled extends Error {}

/** Whatever else comes is transient: the class of an error that tells of an outage differs per runtime. */
const REFUSALS = ['stream-deleted', 'maximum-append-size-exceeded'];

type Line = { readonly stub: StreamsClient; heardAt: number };
type Live = { cancel(): void };
type Ends<T> = {
  succeed(value: T): void;
  fail(error: Error): void;
  /** The server lives: the limit counts anew. */
  heard(): void;
};

export type ConnectionOptions = {
  /** ms without an answer after which a call is over. */
  readonly timeLimitMs: number;
  readonly logger?: Logger;
};

export function eventStoreConnection(
  settings: EventStoreSettings,
  { timeLimitMs, logger }: ConnectionOptions,
): EventStoreConnection {
  const outage = outageLines(logger);
  const { findTarget, credentials, options, metadata } = transport(settings, timeLimitMs);
  const live = new Set<Live>();
  let line: Promise<Line> | null = null;
  /** Where a server said that the leader is. */
  let leader: Target | null = null;
  let closed = false;

  async function connect(): Promise<Line> {
    const target = leader ?? (await findTarget());
    return { stub: new StreamsClient(target, credentials, options), heardAt: 0 };
  }

  function current(): Promise<Line> {
    if (line !== null) return line;
    const mine = connect();
    line = mine;
    mine.catch(() => {
      if (line === mine) line = null;
    });
    return mine;
  }

  /** The next call opens another channel. Calls on this one end as they may. */
  function abandon(old: Line, next: Target | null): void {
    // A new one may be on its way, and fail: whoever asked for it is told.
    line?.then(
      (now) => {
        if (now !== old) return;
        line = null;
        leader = next;
      },
      () => {},
    );
    old.stub.close();
  }

  function errorOf(error: Error, own: Line | null): Error {
    const { reason, away, leader: next } = faultOf(error);
    const elsewhere = next !== null || (away && (settings.discover || leader !== null));
    if (elsewhere && own !== null) abandon(own, next);
    if (REFUSALS.includes(reason)) return new Refusal(reason, error);
    if (!closed && !(error instanceof Cancelled)) outage.began(error);
    return new EventLogUnavailable({ cause: error });
  }

  /** Deadlines of the client are not kept when a server freezes: this call ends by our own timer. */
  function call<T>(limitMs: number | null, begin: (stub: StreamsClient, ends: Ends<T>) => Live): Promise<T> {
    if (closed)
      return Promise.reject(new EventLogUnavailable({ cause: new Error('the event log is closed') }));
    return new Promise<T>((resolve, reject) => {
      const began = performance.now();
      let own: Line | null = null;
      let started: Live | null = null;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const mine: Live = { cancel: () => fail(new Error('the event log is closed')) };
      const over = () => {
        clearTimeout(timer);
        return live.delete(mine);
      };
      // Not in the turn that began it: Bun then tells the server nothing, and the connection stays open for ever.
      const stop = () => setImmediate(() => started?.cancel());
      const fail = (error: Error) => {
        if (!over()) return;
        reject(errorOf(error, own));
        stop();
      };
      const late = () => {
        if (own !== null && own.heardAt < began) abandon(own, null);
        fail(new Error(`no answer within ${limitMs} ms`));
      };
      const watch = () => {
        clearTimeout(timer);
        if (limitMs !== null && live.has(mine)) timer = setTimeout(late, limitMs);
      };
      const succeed = (value: T) => {
        if (over()) resolve(value);
      };
      const heard = () => {
        if (own !== null) own.heardAt = performance.now();
        outage.ended();
        watch();
      };
      live.add(mine);
      watch();
      current()
        .then((open) => {
          own = open;
          if (live.has(mine)) started = begin(open.stub, { succeed, fail, heard });
        })
        .catch(fail);
    });
  }

  return {
    append: (requests) =>
      call(timeLimitMs, (stub, { succeed, fail, heard }) => {
        // With a deadline the server drops what it could not begin in time; what it began may still land later.
        const deadline = Date.now() + timeLimitMs;
        const sent = stub.append(metadata(), { deadline }, (error, answer) => {
          if (answer === undefined) return fail(error ?? new Error('an answer without a word'));
          heard();
          succeed(answer);
        });
        sent.on('error', fail);
        for (const request of requests) sent.write(request);
        sent.end();
        return sent;
      }),
    read: (request, take, limitMs = timeLimitMs) =>
      call<void>(limitMs, (stub, { succeed, fail, heard }) => {
        const answers = stub.read(request, metadata());
        answers.on('data', (answer: ReadResp) => {
          heard();
          try {
            take(answer);
          } catch (error) {
            fail(
              error instanceof Error ? error : new Error('an answer that cannot be read', { cause: error }),
            );
          }
        });
        answers.on('error', fail);
        answers.on('end', () => succeed());
        return answers;
      }),
    listen(request, notice) {
      let cancel = () => {};
      let cancelled = false;
      const ended = call<void>(null, (stub, { fail, heard }) => {
        const { path, requestSerialize } = StreamsService.read;
        const unread = () => true;
        const messages = stub.makeServerStreamRequest(
          path,
          requestSerialize,
          unread,
          request,
          metadata(),
          {},
        );
        cancel = () => fail(new Cancelled());
        messages.on('data', () => {
          heard();
          notice();
        });
        messages.on('error', fail);
        messages.on('end', () => fail(new Error('ended by the server')));
        if (cancelled) cancel();
        return messages;
      });
      return {
        ended: ended.catch(() => {}),
        cancel() {
          cancelled = true;
          cancel();
        },
      };
    },
    async close() {
      closed = true;
      for (const each of [...live]) each.cancel();
      await nextTurn();
      await line?.then(
        ({ stub }) => stub.close(),
        () => {},
      );
    },
  };
}

/** One line for each outage, and one for its end. */
function outageLines(logger: Logger | undefined) {
  let away = false;
  return {
    began(cause: Error) {
      if (!away) logger?.warn('the event log does not answer', { cause });
      away = true;
    },
    ended() {
      if (away) logger?.info('the event log answers again');
      away = false;
    },
  };
}
