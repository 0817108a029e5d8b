// Events of the signing keys, `keys-relay`, and of the transparency log, `log-receipts`.
import { type Static, Type } from '@sinclair/typebox';
import {
  Commitment,
  declareEvent,
  type EventData,
  Hex,
  Instant,
  Nullable,
  oneOf,
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
