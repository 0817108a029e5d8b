// Events of the signing keys, `keys-relay`, and of the transparency log: its checkpoints, `log-receipts`, and what
// witnesses have cosigned, `log-witnesses`.
import { type Static, Type } from '@sinclair/typebox';
import {
  Commitment,
  Count,
  declareEvent,
  type EventData,
  Hex,
  Instant,
  Nullable,
  oneOf,
  strict,
  Text,
} from '#src/domain/event-fields.ts';

export const KeyPurpose = oneOf('receipt', 'checkpoint');
export type KeyPurpose = Static<typeof KeyPurpose>;

export const SigningKeyActivated = declareEvent('keys', 'activatedAt', {
  /** RFC 7638 thumbprint. */
  keyId: Commitment,
  purpose: KeyPurpose,
  alg: Type.Literal('EdDSA'),
  /** The public key: 32 bytes, base64url (RFC 8037). */
  x: Commitment,
  /** HMAC of a constant under the HMAC secret: a process with another secret refuses to start. */
  secretCheck: Hex,
  activatedAt: Instant,
});
export type SigningKeyActivated = EventData<typeof SigningKeyActivated>;

export const SigningKeyRetired = declareEvent('keys', 'retiredAt', {
  keyId: Commitment,
  reason: oneOf('rotated', 'retired', 'compromised'),
  /** A receipt issued later does not verify. */
  effectiveAt: Instant,
  /** Nothing signed by it from this time on is trusted; null unless compromised. */
  compromisedAt: Nullable(Instant),
  retiredAt: Instant,
});
export type SigningKeyRetired = EventData<typeof SigningKeyRetired>;

/** A signed note over the transparency log's tree head (C2SP tlog-checkpoint). */
export const CheckpointSigned = declareEvent('receiptLog', 'signedAt', {
  origin: Text,
  /** Leaves, decimal. */
  size: Type.String({ pattern: '^\\d+$' }),
  /** RFC 6962 root, base64. */
  root: Text,
  keyId: Commitment,
  note: Text,
  signedAt: Instant,
});
export type CheckpointSigned = EventData<typeof CheckpointSigned>;

/** One line of a cosigned checkpoint (C2SP tlog-cosignature), verified when it was recorded. */
export const RecordedCosignature = Type.Object(
  {
    /** Key name of the witness, as in the line. */
    name: Text,
    /** The first 4 bytes of the line's signature, hex (C2SP signed-note). */
    keyId: Type.String({ pattern: '^[0-9a-f]{8}$' }),
    /** When the witness cosigned, by its own clock: Unix seconds. */
    time: Count,
    /** The signature line, without its newline. */
    line: Text,
  },
  strict,
);
export type RecordedCosignature = Static<typeof RecordedCosignature>;

/**
 * A quorum of the configured witnesses has cosigned a checkpoint of `log-receipts`. In a stream of its own: the last event
 * of `log-receipts` is the last checkpoint.
 */
export const CheckpointCosigned = declareEvent('logWitnesses', 'cosignedAt', {
  origin: Text,
  /** Leaves, decimal. */
  size: Type.String({ pattern: '^\\d+$' }),
  /** RFC 6962 root, base64. */
  root: Text,
  /** The checkpoint as the log has signed it, without cosignatures. */
  note: Text,
  cosignatures: Type.Array(RecordedCosignature, { minItems: 1 }),
  /** Name on the `quorum` line of the policy that they satisfy (C2SP tlog-policy). */
  quorum: Text,
  cosignedAt: Instant,
});
export type CheckpointCosigned = EventData<typeof CheckpointCosigned>;
