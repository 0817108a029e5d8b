// The test server's Read: a stream or all, forwards or backwards, once or as a subscription.
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { type handleServerStreamingCall, type ServerWritableStream, status } from '@grpc/grpc-js';
import type { ServerNode, Subscription } from './eventstore-server-append.ts';
import type { StoredEvent } from './eventstore-server-log.ts';
import {
  caughtUp,
  checkpoint,
  confirmation,
  consumerTooSlow,
  type Fault,
  fault,
  readEvent,
  streamDeleted,
  streamName,
  streamNotFound,
} from './eventstore-server-messages.ts';

type Request = InstanceType<typeof streams.ReadReq>;
type Response = InstanceType<typeof streams.ReadResp>;
type Options = InstanceType<typeof streams.ReadReq.Options>;
type ReadCall = ServerWritableStream<Request, Response>;

/** Messages to the caller. `send` resolves when the next may be sent; false if the caller has disconnected. */
export type Outlet = {
  send(message: Response): Promise<boolean>;
  /** Ends the call, with an error if there is a reason. */
  end(reason?: Fault): void;
  isGone(): boolean;
  onGone(listener: () => void): void;
};

export function readCall(node: ServerNode): handleServerStreamingCall<Request, Response> {
  return async (call) => {
    const outlet = outletOf(call);
    const refused = node.admit(call);
    const options = call.request.getOptions();
    if (refused !== null || options === undefined)
      return outlet.end(refused ?? fault(status.UNKNOWN, 'no options'));
    if (node.turn(call)) await read(node, options, outlet);
  };
}

async function read(node: ServerNode, options: Options, outlet: Outlet): Promise<void> {
  const backwards = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
  const stream = options.getStream();
  if (stream !== undefined) {
    const name = streamName(stream.getStreamIdentifier());
    const from = stream.hasEnd() ? 'end' : stream.hasStart() ? null : BigInt(stream.getRevision());
    return readStream(node, outlet, { name, from, backwards, max: BigInt(options.getCount()) });
  }
  const all = options.getAll();
  const position = all?.getPosition()?.getCommitPosition();
  const from = all?.hasEnd() === true ? 'end' : position === undefined ? null : BigInt(position);
  if (options.hasSubscription()) return subscribeToAll(node, outlet, from, filterOf(options));
  const max = BigInt(options.getCount());
  await sendEach(outlet, allEvents(node, from, backwards), max);
}

/** `from`: null for the start. */
type StreamRead = {
  readonly name: string;
  readonly from: bigint | 'end' | null;
  readonly backwards: boolean;
  readonly max: bigint;
};

async function readStream(
  node: ServerNode,
  outlet: Outlet,
  { name, from, backwards, max }: StreamRead,
): Promise<void> {
  const content = node.log.stream(name);
  if (content.kind === 'deleted') return outlet.end(streamDeleted(name));
  if (content.kind !== 'events') {
    await outlet.send(streamNotFound(name));
    return outlet.end();
  }
  if (from === 'end' && !backwards) {
    return outlet.end(fault(status.UNKNOWN, 'Unexpected ReadStreamResult: Error'));
  }
  const { events, first } = content;
  await sendEach(outlet, backwards ? down(events, from, first) : up(events, from, first), max);
}

function* up(
  events: readonly StoredEvent[],
  from: bigint | 'end' | null,
  first: number,
): Iterable<StoredEvent> {
  if (from === 'end') return;
  for (let at = Math.max(first, Number(from ?? 0n)); at < events.length; at++) {
    const event = events[at];
    if (event !== undefined) yield event;
  }
}

function* down(
  events: readonly StoredEvent[],
  from: bigint | 'end' | null,
  first: number,
): Iterable<StoredEvent> {
  const last = events.length - 1;
  const start = from === 'end' ? last : Math.min(last, Number(from ?? 0n));
  for (let at = start; at >= first; at--) {
    const event = events[at];
    if (event !== undefined) yield event;
  }
}

/** `from` is inclusive forwards and exclusive backwards. */
function* allEvents(
  node: ServerNode,
  from: bigint | 'end' | null,
  backwards: boolean,
): Iterable<StoredEvent> {
  const { log } = node;
  const bound = from === 'end' ? log.events.length : from === null ? 0 : log.indexAt(from);
  if (backwards) yield* down(log.events.slice(0, bound), 'end', 0);
  else yield* up(log.events, BigInt(bound), 0);
}

async function sendEach(outlet: Outlet, events: Iterable<StoredEvent>, max: bigint): Promise<void> {
  let left = max;
  for (const event of events) {
    if (left-- <= 0n) break;
    if (!(await outlet.send(readEvent(event)))) return;
  }
  outlet.end();
}

/** Events between two checkpoints, for each unit of the client's interval. */
const WINDOW = 32;

type AllFilter = {
  passes(event: StoredEvent): boolean;
  /** Events looked at between two checkpoints. */
  readonly checkpointEvery: number;
};

function filterOf(options: Options): AllFilter | null {
  const filter = options.getFilter();
  if (filter === undefined) return null;
  const expression = filter.getStreamIdentifier() ?? filter.getEventType();
  const byStream = filter.hasStreamIdentifier();
  const regex = expression?.getRegex() ?? '';
  const prefixes = expression?.getPrefixList() ?? [];
  const pattern = regex === '' ? null : new RegExp(regex);
  const window = filter.hasMax() ? filter.getMax() : WINDOW;
  return {
    passes: (event) => {
      const text = byStream ? event.stream : event.type;
      return pattern === null ? prefixes.some((prefix) => text.startsWith(prefix)) : pattern.test(text);
    },
    checkpointEvery: window * filter.getCheckpointintervalmultiplier(),
  };
}

function outletOf(call: ReadCall): Outlet {
  let gone = false;
  let release = () => {};
  let notify = () => {};
  const leave = () => {
    gone = true;
    release();
    notify();
  };
  for (const event of ['cancelled', 'close', 'error', 'finish']) call.once(event, leave);
  call.on('drain', () => release());
  return {
    isGone: () => gone,
    onGone: (listener) => {
      notify = listener;
    },
    send: async (message) => {
      if (!gone && !call.write(message)) {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return !gone;
    },
    end: (reason) => {
      if (gone) return;
      if (reason === undefined) call.end();
      else call.emit('error', reason);
      leave();
    },
  };
}

/**
 * Sends the confirmation, the stored events after `after` (exclusive; null: the start), `caughtUp`, and then live events,
 * with checkpoints if there is a filter.
 */
async function subscribeToAll(
  node: ServerNode,
  outlet: Outlet,
  after: bigint | 'end' | null,
  filter: AllFilter | null,
): Promise<void> {
  const { log, armed, subscriptions } = node;
  // The real server reads one event from the position on, and begins behind it.
  let at = after === 'end' ? log.events.length : after === null ? 0 : log.indexAt(after) + 1;
  let looked = 0;
  /** Events since it caught up; null until then. */
  let live: number | null = null;
  let wake = () => {};
  const stopListening = log.onAppend(() => wake());
  outlet.onGone(() => wake());
  const subscription: Subscription = { drop: (reason) => outlet.end(reason) };
  subscriptions.add(subscription);
  await outlet.send(confirmation());
  while (!outlet.isGone()) {
    const event = log.events[at];
    if (event !== undefined) {
      at++;
      if (filter === null || filter.passes(event)) await outlet.send(readEvent(event));
      if (filter !== null && ++looked % filter.checkpointEvery === 0)
        await outlet.send(checkpoint(event.position));
      if (live !== null && ++live === armed.tooSlowAfter) outlet.end(consumerTooSlow());
    } else if (live === null) {
      live = 0;
      await outlet.send(caughtUp());
    } else {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  subscriptions.delete(subscription);
  stopListening();
}
