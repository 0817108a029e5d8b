// Events of the signing keys, `keys-relay`, and of the transparency log, `log-receipts`.
import { type Static, Type } from '@sinclair/typebox';
import {
  Commitment,
  declareEvent,
  type EventData,
  Hex,
  Instant,
  Nullable,
  strict,
  Text,
  V1,
} from '#src/domain/event-fields.ts';

export const KeyPurpose = Type.Union([Type.Literal('receipt'), Type.Literal('checkpoint')]);
export type KeyPurpose = Static<typeof KeyPurpose>;

export const SigningKeyActivated = declareEvent({
  stream: 'keys',
  time: 'activatedAt',
  versions: {
    1: Type.Object(
      {
        v: V1,
        /** RFC 7638 thumbprint. */
        keyId: Commitment,
        purpose: KeyPurpose,
        alg: Type.Literal('EdDSA'),
        /** The public key: 32 bytes, base64url (RFC 8037). */
        x: Commitment,
        /** HMAC of a constant under the HMAC secret: a process with another secret refuses to start. */
        secretCheck: Hex,
        activatedAt: Instant,
      },
      strict,
    ),
  },
});
export type SigningKeyActivated = EventData<typeof SigningKeyActivated>;

export const SigningKeyRetired = declareEvent({
  stream: 'keys',
  time: 'retiredAt',
  versions: {
    1: Type.Object(
      {
        v: V1,
        keyId: Commitment,
        reason: Type.Union([Type.Literal('rotated'), Type.Literal('retired'), Type.Literal('compromised')]),
        /** A receipt issued later does not verify. */
        effectiveAt: Instant,
        /** Nothing signed by it from this time on is trusted; null unless compromised. */
        compromisedAt: Nullable(Instant),
        retiredAt: Instant,
      },
      strict,
    ),
  },
});
export type SigningKeyRetired = EventData<typeof SigningKeyRetired>;

/** A signed note over the transparency log's tree head (C2SP tlog-checkpoint). */
export const CheckpointSigned = declareEvent({
  stream: 'receiptLog',
  time: 'signedAt',
  versions: {
    1: Type.Object(
      {
        v: V1,
        origin: Text,
        /** Leaves, decimal. */
        size: Type.String({ pattern: '^\\d+$' }),
        /** RFC 6962 root, base64. */
        root: Text,
        keyId: Commitment,
        note: Text,
        signedAt: Instant,
      },
      strict,
    ),
  },
});
export type CheckpointSigned = EventData<typeof CheckpointSigned>;
