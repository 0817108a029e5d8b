// The test server's writing calls (Append, Delete, Tombstone), and the checks before every call: credentials, open
// connection, injected faults.

import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { type handleClientStreamingCall, type handleUnaryCall, status } from '@grpc/grpc-js';
import type { ServerSurfaceCall } from '@grpc/grpc-js/build/src/server-call.js';
import type { Expected, ProposedEvent, ServerLog } from './eventstore-server-log.ts';
import {
  type AppendAnswer,
  appendResponse,
  type Fault,
  fault,
  MAX_APPEND_BYTES,
  streamDeleted,
  streamName,
} from './eventstore-server-messages.ts';
import type { Front } from './eventstore-server-network.ts';

type Message<T extends abstract new (...args: never) => unknown> = InstanceType<T>;

type Write = {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: ProposedEvent[];
};

/** null: the answer is lost, and the connection with it. */
async function write(node: ServerNode, call: ServerSurfaceCall, asked: Write): Promise<AppendAnswer | null> {
  const { armed, log, front } = node;
  if (!node.turn(call)) return null;
  const bytes = asked.events.reduce(
    (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
    0,
  );
  if (bytes > MAX_APPEND_BYTES) return { kind: 'too_large' };
  if (asked.events.some(({ type }) => armed.refusedTypes.has(type))) return { kind: 'timeout' };
  if (armed.refuseAppends > 0) {
    armed.refuseAppends--;
    return { kind: 'timeout' };
  }
  const answer = log.append(asked.stream, asked.expected, asked.events);
  const spared = armed.loseAnswers === 0 || asked.stream === armed.sparedStream;
  if (answer.kind !== 'stored' || spared) return answer;
  armed.loseAnswers--;
  front.cut(call.getPeer());
  return null;
}

export function appendCall(
  node: ServerNode,
): handleClientStreamingCall<Message<typeof streams.AppendReq>, Message<typeof streams.AppendResp>> {
  return (call, answer) => {
    const refused = node.admit(call);
    let asked: Write | null = null;
    call.on('data', (request: Message<typeof streams.AppendReq>) => {
      const options = request.getOptions();
      const proposed = request.getProposedMessage();
      if (options !== undefined) {
        asked = {
          stream: streamName(options.getStreamIdentifier()),
          expected: expectation(options),
          events: [],
        };
      }
      if (proposed !== undefined) asked?.events.push(proposedEvent(proposed));
    });
    call.on('end', async () => {
      if (refused !== null || asked === null) return answer(refused ?? fault(status.UNKNOWN, 'no options'));
      const said = await write(node, call, asked);
      if (said === null) return;
      const response = appendResponse(said, asked.stream, asked.expected);
      if (response instanceof streams.AppendResp) answer(null, response);
      else answer(response);
    });
  };
}

export function deleteCall(
  node: ServerNode,
): handleUnaryCall<Message<typeof streams.DeleteReq>, Message<typeof streams.DeleteResp>> {
  return async (call, answer) => {
    const options = call.request.getOptions();
    const removed = await remove(node, call, options, false);
    if (removed === null) return;
    if (typeof removed !== 'bigint') return answer(removed);
    const position = new streams.DeleteResp.Position();
    position.setCommitPosition(removed.toString()).setPreparePosition(removed.toString());
    answer(null, new streams.DeleteResp().setPosition(position));
  };
}

export function tombstoneCall(
  node: ServerNode,
): handleUnaryCall<Message<typeof streams.TombstoneReq>, Message<typeof streams.TombstoneResp>> {
  return async (call, answer) => {
    const options = call.request.getOptions();
    const removed = await remove(node, call, options, true);
    if (removed === null) return;
    if (typeof removed !== 'bigint') return answer(removed);
    const position = new streams.TombstoneResp.Position();
    position.setCommitPosition(removed.toString()).setPreparePosition(removed.toString());
    answer(null, new streams.TombstoneResp().setPosition(position));
  };
}

type RemoveOptions = Message<typeof streams.DeleteReq.Options> | Message<typeof streams.TombstoneReq.Options>;

/** Position of the deletion's record; null: the connection is gone. */
async function remove(
  node: ServerNode,
  call: ServerSurfaceCall,
  options: RemoveOptions | undefined,
  hard: boolean,
): Promise<bigint | Fault | null> {
  const refused = node.admit(call);
  if (refused !== null || options === undefined) return refused ?? fault(status.UNKNOWN, 'no options');
  if (!node.turn(call)) return null;
  const stream = streamName(options.getStreamIdentifier());
  const expected = expectation(options);
  const outcome = node.log.remove(stream, expected, hard);
  if (outcome.kind === 'deleted') return streamDeleted(stream);
  if (outcome.kind !== 'wrong_version') return outcome.position ?? 0n;
  const [wanted, actual] = [expectedNumber(expected), (outcome.actual ?? -1n).toString()];
  const said = `Stream: ${stream}, Expected version: ${wanted}, Actual version: ${actual}`;
  return fault(status.FAILED_PRECONDITION, `Delete failed due to WrongExpectedVersion. ${said}`, {
    exception: 'wrong-expected-version',
    'stream-name': stream,
    'expected-version': wanted,
    'actual-version': actual,
  });
}

type Expectation = {
  hasNoStream(): boolean;
  hasAny(): boolean;
  getRevision(): string;
};

function expectation(options: Expectation): Expected {
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasAny()) return 'any';
  return BigInt(options.getRevision());
}

/** The server's numeric codes of these names. */
function expectedNumber(expected: Expected): string {
  if (typeof expected === 'bigint') return expected.toString();
  return { no_stream: '-1', any: '-2' }[expected];
}

function proposedEvent(message: Message<typeof streams.AppendReq.ProposedMessage>): ProposedEvent {
  const properties = message.getMetadataMap();
  return {
    id: (message.getId() ?? new shared.UUID()).getString(),
    type: properties.get('type') ?? '',
    json: properties.get('content-type') === 'application/json',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

export type Credentials = { readonly username: string; readonly password: string };

/** Counts of appends that are still to fail. */
export type ArmedFaults = {
  loseAnswers: number;
  /** Answers of its appends are not lost; null: of none. */
  sparedStream: string | null;
  refuseAppends: number;
  readonly refusedTypes: Set<string>;
  /** Live events after which a subscriber is dropped as too slow; null: never. */
  tooSlowAfter: number | null;
};

export type Subscription = { drop(reason: Fault): void };

export type ServerNode = {
  readonly log: ServerLog;
  readonly front: Front;
  readonly armed: ArmedFaults;
  /** Open subscriptions. */
  readonly subscriptions: Set<Subscription>;
  /** null: admitted. */
  admit(call: ServerSurfaceCall): Fault | null;
  /** false: the connection was closed, and the call is dropped. */
  turn(call: ServerSurfaceCall): boolean;
};

export function serverNode(log: ServerLog, front: Front, credentials: Credentials | undefined): ServerNode {
  const armed: ArmedFaults = {
    loseAnswers: 0,
    sparedStream: null,
    refuseAppends: 0,
    refusedTypes: new Set(),
    tooSlowAfter: null,
  };
  const expected = credentials && `Basic ${btoa(`${credentials.username}:${credentials.password}`)}`;
  return {
    log,
    front,
    armed,
    subscriptions: new Set(),
    admit(call) {
      const given = call.metadata.get('authorization')[0];
      if (expected === undefined || given === expected) return null;
      if (given !== undefined) return fault(status.UNAUTHENTICATED, 'Unauthenticated');
      return fault(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
    },
    turn(call) {
      return front.isOpen(call.getPeer());
    },
  };
}
