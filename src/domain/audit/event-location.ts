// Where an event stands, and whether an event of its type may stand there.

import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, isPaymentEvent, STREAM } from '#src/domain/events.ts';
import type { Finding, FindingKind } from './finding.ts';

/** What a finding says of one event. */
export type Place = Pick<Finding, 'stream' | 'revision' | 'jobId' | 'position'>;

/** A finding without its place. `message`: what will be a sentence. */
export type Fault = { readonly kind: FindingKind; readonly message: string };

export const findingOf = ({ kind, message }: Fault, place: Place): Finding => ({
  kind,
  ...place,
  message: sentence(message),
});

/** What begins with an id is left as it is. */
const sentence = (text: string): string =>
  `${/^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() : text.charAt(0)}${text.slice(1)}.`;

const JOB = STREAM.job('');

/** By the stream's name; null for a stream of something else. */
export const jobOfStream = (stream: string): string | null =>
  stream.startsWith(JOB) ? stream.slice(JOB.length) : null;

/** The job of a job's stream by its name; of others the one that the event names. */
export function placeOf({ stream, revision, position, data }: RecordedEvent): Place {
  const named = typeof data.jobId === 'string' ? data.jobId : null;
  const jobId = jobOfStream(stream) ?? named;
  return { stream, revision: String(revision), jobId, position };
}

export function homeFault(event: DomainEvent, stream: string): Fault | null {
  if (isPaymentEvent(event)) return isHashed(STREAM.payment, stream) ? null : misplaced(event.type);
  switch (event.type) {
    case 'JobStarted':
    case 'AttemptMade':
    case 'JobCompleted':
    case 'ReceiptSigned':
      return inStreamOf(STREAM.job, event.data.jobId, event.type, stream);
    case 'DecisionRecorded':
      return inStreamOf(STREAM.decision, event.data.decisionId, event.type, stream);
    case 'IdempotencyKeyClaimed':
    case 'IdempotencyKeyReleased':
      return isHashed(STREAM.claim, stream) ? null : misplaced(event.type);
    case 'SigningKeyActivated':
    case 'SigningKeyRetired':
      return stream === STREAM.keys ? null : misplaced(event.type);
    case 'CheckpointSigned':
      return stream === STREAM.receiptLog ? null : misplaced(event.type);
    default:
      return event satisfies never;
  }
}

type Naming = (id: string) => string;

function inStreamOf(name: Naming, id: string, type: string, stream: string): Fault | null {
  if (stream === name(id)) return null;
  if (!stream.startsWith(name(''))) return misplaced(type);
  return { kind: 'stream_mismatch', message: `the event is of ${id}, and the stream is another's` };
}

const isHashed = (name: Naming, stream: string): boolean =>
  stream.startsWith(name('')) && /^[0-9a-f]{64}$/.test(stream.slice(name('').length));

const misplaced = (type: string): Fault => ({
  kind: 'event_misplaced',
  message: `no ${type} belongs into a stream of this name`,
});
