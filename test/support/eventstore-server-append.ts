// The test server's writing calls: Append, BatchAppend, Delete, Tombstone.
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import {
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleUnaryCall,
  status,
} from '@grpc/grpc-js';
import type { ServerSurfaceCall } from '@grpc/grpc-js/build/src/server-call.js';
import type { Expected, ProposedEvent } from './eventstore-server-log.ts';
import {
  type AppendAnswer,
  appendResponse,
  batchAppendResponse,
  type Fault,
  fault,
  MAX_APPEND_BYTES,
  streamDeleted,
  streamName,
} from './eventstore-server-messages.ts';
import type { ServerNode } from './eventstore-server-node.ts';

type Message<T extends abstract new (...args: never) => unknown> = InstanceType<T>;
type BatchOptions = Message<typeof streams.BatchAppendReq.Options>;

type Write = {
  readonly stream: string;
  readonly expected: Expected;
  readonly deadline: Date | null;
  readonly events: ProposedEvent[];
};

/** null: the answer is lost, and the connection with it. */
async function write(node: ServerNode, call: ServerSurfaceCall, asked: Write): Promise<AppendAnswer | null> {
  const { armed, log, front } = node;
  if (!(await node.turn(call))) return null;
  const bytes = asked.events.reduce(
    (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
    0,
  );
  if (bytes > MAX_APPEND_BYTES) return { kind: 'too_large' };
  if (armed.refuseAppends > 0) {
    armed.refuseAppends--;
    return { kind: 'timeout' };
  }
  // As a real server: what waited beyond the caller's deadline is answered, and not stored.
  if (asked.deadline !== null && asked.deadline.getTime() <= Date.now()) return { kind: 'timeout' };
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
          deadline: null,
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

export function batchAppendCall(
  node: ServerNode,
): handleBidiStreamingCall<Message<typeof streams.BatchAppendReq>, Message<typeof streams.BatchAppendResp>> {
  return (call) => {
    const refused = node.admit(call);
    if (refused !== null) {
      call.emit('error', refused);
      return;
    }
    /** By correlation id, until the part that is the last. */
    const pending = new Map<string, Write>();
    let open = 0;
    let ended = false;
    const done = () => {
      if (ended && open === 0) call.end();
    };
    call.on('data', async (request: Message<typeof streams.BatchAppendReq>) => {
      const correlation = request.getCorrelationId();
      const key = correlation?.getString() ?? '';
      const options = request.getOptions();
      if (options !== undefined) pending.set(key, batchWrite(options));
      const asked = pending.get(key);
      if (asked === undefined) return;
      asked.events.push(...request.getProposedMessagesList().map(proposedEvent));
      if (!request.getIsFinal()) return;
      pending.delete(key);
      open++;
      const said = await write(node, call, asked);
      open--;
      if (said !== null && !call.cancelled) {
        call.write(batchAppendResponse(said, asked.stream, asked.expected).setCorrelationId(correlation));
      }
      done();
    });
    call.on('error', () => undefined);
    call.on('end', () => {
      ended = true;
      done();
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
  if (!(await node.turn(call))) return null;
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
  hasStreamExists(): boolean;
} & ({ getRevision(): string } | { getStreamPosition(): string });

function expectation(options: Expectation): Expected {
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasAny()) return 'any';
  if (options.hasStreamExists()) return 'stream_exists';
  return BigInt('getRevision' in options ? options.getRevision() : options.getStreamPosition());
}

/** The server's own numbers for the words. */
function expectedNumber(expected: Expected): string {
  if (typeof expected === 'bigint') return expected.toString();
  return { no_stream: '-1', any: '-2', stream_exists: '-4' }[expected];
}

function batchWrite(options: BatchOptions): Write {
  const deadline = options.getDeadline()?.toDate() ?? null;
  return {
    stream: streamName(options.getStreamIdentifier()),
    expected: expectation(options),
    deadline,
    events: [],
  };
}

type Proposed =
  | Message<typeof streams.AppendReq.ProposedMessage>
  | Message<typeof streams.BatchAppendReq.ProposedMessage>;

function proposedEvent(message: Proposed): ProposedEvent {
  const properties = message.getMetadataMap();
  return {
    id: (message.getId() ?? new shared.UUID()).getString(),
    type: properties.get('type') ?? '',
    json: properties.get('content-type') === 'application/json',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}
