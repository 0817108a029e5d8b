// Which keys this relay has announced, and whether this process may sign with the one it holds.

import { STREAM } from '../domain/events.ts';
import { evolveKeys, type KeyRecord } from '../domain/receipt/keys.ts';
import { decodeEvent } from '../domain/recorded.ts';
import type { Clock } from '../ports/clock.ts';
import { WrongExpectedVersion } from '../ports/event-log.ts';
import { appendUntilKnown, envelope, type JournalDeps } from './journal.ts';

export type OwnKey = {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
  /** HMAC of a constant under the HMAC secret, hex. */
  readonly secretCheck: string;
};

/** The start is refused: this process would sign or name claims otherwise than the others of this log. */
export class KeyMismatch extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyMismatch';
  }
}

/** The start is refused: the log is there, yet stores nothing, or too late. */
export class LogTakesNothing extends Error {
  constructor() {
    super('the event log takes no events: the signing key cannot be announced; start again when it does');
    this.name = 'LogTakesNothing';
  }
}

/** As long as a start waits for a log that is away. */
const PATIENCE_MS = 30_000;

export type KeyRing = { readonly keys: readonly KeyRecord[]; readonly secretChecks: ReadonlySet<string> };

export async function loadKeyRing(
  deps: Pick<JournalDeps, 'log'>,
): Promise<KeyRing & { readonly revision: bigint | 'no_stream' }> {
  const events = await deps.log.readStream(STREAM.keys);
  let keys: readonly KeyRecord[] = [];
  const secretChecks = new Set<string>();
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    // A retirement that this version cannot read must not be passed over.
    if (event === null) throw new Error(`an event of keys cannot be read: ${recorded.type}`);
    if (event.type !== 'KeyActivated' && event.type !== 'KeyRetired') continue;
    keys = evolveKeys(keys, event);
    if (event.type === 'KeyActivated') secretChecks.add(event.data.secretCheck);
  }
  return { keys, secretChecks, revision: events.at(-1)?.revision ?? 'no_stream' };
}

/**
 * Announces the first key of an empty log, and otherwise demands that log and key file know each other: the same HMAC
 * secret and an activated key. Answers the ring only after it has read its own activation. Throws `KeyMismatch`, and
 * `LogTakesNothing` where that takes too long.
 */
export async function activateSigningKey(deps: JournalDeps, own: OwnKey): Promise<KeyRing> {
  const patient = { ...deps, clock: clockUntil(deps.clock, deps.clock.monotonic() + PATIENCE_MS) };
  for (;;) {
    const ring = await loadKeyRing(deps);
    if (ring.keys.length > 0) {
      if (!ring.secretChecks.has(own.secretCheck)) {
        throw new KeyMismatch(
          'the key file holds another HMAC secret than the one this event log was written with',
        );
      }
      const known = ring.keys.find(
        ({ keyId, x, purpose }) => keyId === own.keyId && x === own.x && purpose === 'receipt',
      );
      if (known === undefined)
        throw new KeyMismatch('the key file signs with a key that this event log does not know');
      if (known.notAfter !== null) throw new KeyMismatch('the key file signs with a retired key');
      return ring;
    }
    const activatedAt = new Date(deps.clock.now()).toISOString();
    const data = { v: 1 as const, ...own, purpose: 'receipt' as const, alg: 'EdDSA' as const, activatedAt };
    const events = envelope(deps, [{ type: 'KeyActivated', data }], own.keyId);
    try {
      await appendUntilKnown(patient, STREAM.keys, ring.revision, events);
    } catch (error) {
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
  }
}

/** Its sleeps throw where they would end after `last`, so that what is repeated in between ends. */
function clockUntil(clock: Clock, last: number): Clock {
  return {
    ...clock,
    async sleep(ms, signal) {
      if (clock.monotonic() + ms > last) throw new LogTakesNothing();
      await clock.sleep(ms, signal);
    },
  };
}
