// Which keys this relay has announced, and whether this process may sign with those it holds.

import { decodeEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import type { KeyPurpose, SigningKeyActivated } from '#src/domain/signing-keys/events.ts';
import { evolveKeys, isUnretired, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type HeldKey, recordOf } from '#src/domain/signing-keys/local-keys.ts';
import type { Clock } from '#src/ports/clock.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/event-streams.ts';

export type OwnKeys = {
  /** In the order of the key file. */
  readonly keys: readonly HeldKey[];
  /** HMAC of a constant under the HMAC secret, hex. */
  readonly secretCheck: string;
};

/** This process would sign or name claims otherwise than the others of this log: it must not start, nor change keys. */
export class KeyMismatch extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyMismatch';
  }
}

/** The log is there, yet stores nothing, or too late: what was to be announced is not. */
export class LogTakesNothing extends Error {
  constructor() {
    super('the event log takes no events: the signing keys cannot be announced; start again when it does');
    this.name = 'LogTakesNothing';
  }
}

export type KeyRing = {
  readonly keys: readonly KeyRecord[];
  readonly secretChecks: ReadonlySet<string>;
  /** Ids of keys that gave way to a fresh one. */
  readonly rotated: ReadonlySet<string>;
  readonly revision: bigint | 'no_stream';
};

export async function loadKeyRing(deps: Pick<JournalDeps, 'log'>): Promise<KeyRing> {
  const events = await deps.log.readStream(STREAM.keys);
  let keys: readonly KeyRecord[] = [];
  const secretChecks = new Set<string>();
  const rotated = new Set<string>();
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    // A retirement that this version cannot read must not be passed over.
    if (event === null) throw new Error(`an event of keys cannot be read: ${recorded.type}`);
    if (event.type !== 'SigningKeyActivated' && event.type !== 'SigningKeyRetired') continue;
    keys = evolveKeys(keys, event);
    if (event.type === 'SigningKeyActivated') secretChecks.add(event.data.secretCheck);
    else if (event.data.reason === 'rotated') rotated.add(event.data.keyId);
  }
  return { keys, secretChecks, rotated, revision: events.at(-1)?.revision ?? 'no_stream' };
}

/**
 * Announces the first keys of an empty log, and the first checkpoint key of a log that has none; otherwise demands that
 * log and key file know each other. Answers the ring only after it has read its own activations. Throws `KeyMismatch`,
 * and `LogTakesNothing` where that takes too long.
 */
export async function activateSigningKeys(deps: JournalDeps, own: OwnKeys): Promise<KeyRing> {
  const patient = withPatience(deps);
  for (;;) {
    const ring = await loadKeyRing(deps);
    if (ring.keys.length > 0) demandAcquainted(ring, own);
    const first = firstKeys(ring, own);
    const [oldest] = first;
    if (oldest === undefined) return ring;
    const activatedAt = iso(deps.clock.now());
    const events = first.map((key) => activation(key, own.secretCheck, activatedAt));
    try {
      const enveloped = envelope(deps, events, oldest.key.keyId);
      await appendUntilKnown(patient, STREAM.keys, ring.revision, enveloped);
    } catch (error) {
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
  }
}

type Announced = { readonly key: HeldKey; readonly purpose: KeyPurpose };

/** What nobody has announced yet: of an empty log both keys, of one from before there were checkpoints theirs. */
function firstKeys(ring: KeyRing, { keys }: OwnKeys): readonly Announced[] {
  const firstActive = (purpose: KeyPurpose): Announced[] => {
    const key = keys.find((each) => each.purpose === purpose && each.status === 'active');
    return key === undefined ? [] : [{ key, purpose }];
  };
  const receipt = ring.keys.length === 0 ? firstActive('receipt') : [];
  if (ring.keys.length === 0 && receipt.length === 0)
    throw new KeyMismatch('the key file has no active key for receipts');
  const checkpoint = ring.keys.some(({ purpose }) => purpose === 'checkpoint')
    ? []
    : firstActive('checkpoint');
  return [...receipt, ...checkpoint];
}

/** `ms`: Unix. */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** The times of a key in RFC 3339. */
export const windowOf = ({ notBefore, notAfter, compromisedAt }: KeyRecord) => ({
  notBefore: iso(notBefore * 1000),
  notAfter: notAfter === null ? null : iso(notAfter * 1000),
  compromisedAt: compromisedAt === null ? null : iso(compromisedAt * 1000),
});

export function activation(
  { key, purpose }: Announced,
  secretCheck: string,
  activatedAt: string,
): { type: 'SigningKeyActivated'; data: SigningKeyActivated } {
  const { keyId, x } = key;
  return {
    type: 'SigningKeyActivated',
    data: { v: 1, keyId, purpose, alg: 'EdDSA', x, secretCheck, activatedAt },
  };
}

export function demandSameSecret(ring: KeyRing, { secretCheck }: Pick<OwnKeys, 'secretCheck'>): void {
  if (ring.secretChecks.has(secretCheck)) return;
  throw new KeyMismatch(
    'the key file holds another HMAC secret than the one this event log was written with',
  );
}

/** A fresh key that nobody has announced may stand in the file, and a retired one; one that signs must be there too. */
function demandAcquainted(ring: KeyRing, own: OwnKeys): void {
  demandSameSecret(ring, own);
  const active = own.keys.filter(({ purpose, status }) => purpose === 'receipt' && status === 'active');
  if (active.length === 0) throw new KeyMismatch('the key file has no active key for receipts');
  const known = active.flatMap((key) => recordOf(key, ring.keys) ?? []);
  if (known.length === 0)
    throw new KeyMismatch('the key file signs with a key that this event log does not know');
  if (!known.some(isUnretired)) throw new KeyMismatch('the key file signs with a retired key');
}

/** As long as a start, or an operator, waits for a log that is away. */
const PATIENCE_MS = 30_000;

/** Its sleeps throw where they would end too late, so that what is repeated in between ends. */
export function withPatience(deps: JournalDeps): JournalDeps {
  const { clock } = deps;
  const last = clock.monotonic() + PATIENCE_MS;
  const until: Clock = {
    ...clock,
    async sleep(ms, signal) {
      if (clock.monotonic() + ms > last) throw new LogTakesNothing();
      await clock.sleep(ms, signal);
    },
  };
  return { ...deps, clock: until };
}
