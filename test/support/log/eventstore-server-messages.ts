// The test server's messages, as the client's generated types.
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, status } from '@grpc/grpc-js';
import type { AppendOutcome, Expected, StoredEvent } from './eventstore-server-log.ts';

/** Results of an append that do not depend on the log. */
export type AppendAnswer = AppendOutcome | { readonly kind: 'timeout' } | { readonly kind: 'too_large' };

/** The default of `--max-append-size`. */
export const MAX_APPEND_BYTES = 1_048_576;

export type Fault = { readonly code: status; readonly details: string; readonly metadata: Metadata };

export function fault(
  code: status,
  details: string,
  properties: Readonly<Record<string, string>> = {},
): Fault {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(properties)) metadata.set(name, value);
  return { code, details, metadata };
}

export function streamDeleted(stream: string): Fault {
  const properties = { exception: 'stream-deleted', 'stream-name': stream };
  return fault(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, properties);
}

export const consumerTooSlow = () =>
  fault(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );

/** The answer of `Append`; an error if the result has no message. */
export function appendResponse(
  answer: AppendAnswer,
  stream: string,
  expected: Expected,
): InstanceType<typeof streams.AppendResp> | Fault {
  const response = new streams.AppendResp();
  switch (answer.kind) {
    case 'stored':
    case 'repeated': {
      const success = new streams.AppendResp.Success().setCurrentRevision(answer.revision.toString());
      if (answer.position === null) success.setNoPosition(new shared.Empty());
      else success.setPosition(position(new streams.AppendResp.Position(), answer.position));
      return response.setSuccess(success);
    }
    case 'wrong_version': {
      const wrong = new streams.AppendResp.WrongExpectedVersion();
      if (answer.actual === null) wrong.setCurrentNoStream(new shared.Empty());
      else wrong.setCurrentRevision(answer.actual.toString());
      if (expected === 'any') wrong.setExpectedAny(new shared.Empty());
      else if (expected === 'no_stream') wrong.setExpectedNoStream(new shared.Empty());
      else wrong.setExpectedRevision(expected.toString());
      return response.setWrongExpectedVersion(wrong);
    }
    case 'deleted':
      return streamDeleted(stream);
    case 'timeout':
      return fault(status.ABORTED, 'Operation timed out: Commit phase timeout.');
    case 'too_large':
      return fault(status.INVALID_ARGUMENT, `Maximum Append Size of ${MAX_APPEND_BYTES} Exceeded.`, {
        exception: 'maximum-append-size-exceeded',
        'maximum-append-size': String(MAX_APPEND_BYTES),
      });
  }
}

export function readEvent(event: StoredEvent) {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(event.id))
    .setStreamIdentifier(identifier(event.stream))
    .setStreamRevision(event.revision.toString())
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  position(recorded, event.position);
  recorded
    .getMetadataMap()
    .set('type', event.type)
    .set('created', event.created.toString())
    .set('content-type', event.json ? 'application/json' : 'application/octet-stream');
  const read = new streams.ReadResp.ReadEvent()
    .setEvent(recorded)
    .setCommitPosition(event.position.toString());
  return new streams.ReadResp().setEvent(read);
}

export function streamNotFound(stream: string) {
  const missing = new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifier(stream));
  return new streams.ReadResp().setStreamNotFound(missing);
}

export function confirmation() {
  const confirmed = new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(crypto.randomUUID());
  return new streams.ReadResp().setConfirmation(confirmed);
}

export function caughtUp() {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

export function checkpoint(at: bigint) {
  return new streams.ReadResp().setCheckpoint(position(new streams.ReadResp.Checkpoint(), at));
}

export function streamName(given: InstanceType<typeof shared.StreamIdentifier> | undefined): string {
  return new TextDecoder().decode(given?.getStreamName_asU8());
}

function identifier(stream: string) {
  return new shared.StreamIdentifier().setStreamName(new TextEncoder().encode(stream));
}

type Positioned = {
  setCommitPosition(value: string): unknown;
  setPreparePosition(value: string): unknown;
};

/** An event of a single append has one position for both. */
function position<T extends Positioned>(message: T, at: bigint): T {
  message.setCommitPosition(at.toString());
  message.setPreparePosition(at.toString());
  return message;
}
