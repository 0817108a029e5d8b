// The end of one key: from ten minutes on it signs nothing more; compromised, nothing it signed after that day counts.
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { KeyPurpose } from '#src/domain/signing-keys/events.ts';
import { evolveKeys, isUnretired, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { lastingKeys } from '#src/domain/signing-keys/local-keys.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendUntilKnown, envelope } from '#src/usecases/event-streams.ts';
import { demandSameSecret, iso, loadKeyRing, withPatience } from './announce-keys.ts';
import { type KeyOfficeDeps, mark } from './rotate-keys.ts';

/** As every process needs to read of it, and a job in flight to end under the key it may have begun with. */
const NOTICE_MS = 600_000;

export type Retirement =
  | { readonly outcome: 'retired' | 'unchanged'; readonly purpose: KeyPurpose; readonly record: KeyRecord }
  | { readonly outcome: 'unknown_key' }
  /** Nothing could sign in its place. */
  | { readonly outcome: 'only_key'; readonly purpose: KeyPurpose };

/**
 * `compromisedAt`: Unix ms, null where the key is merely no longer needed. `unchanged`: it had ended as early already.
 * Throws `KeyMismatch`, `LogTakesNothing`, or what the key store throws.
 */
export async function retireKey(
  deps: KeyOfficeDeps,
  keyId: string,
  compromisedAt: number | null,
): Promise<Retirement> {
  const patient = withPatience(deps);
  for (;;) {
    const ring = await loadKeyRing(deps);
    const content = deps.store.read();
    demandSameSecret(ring, content);
    const record = ring.keys.find((key) => key.keyId === keyId);
    if (record === undefined) return { outcome: 'unknown_key' };
    const { purpose } = record;
    const others = lastingKeys(content.keys, ring.keys, purpose).filter((key) => key.keyId !== keyId);
    if (isUnretired(record) && others.length === 0) return { outcome: 'only_key', purpose };
    const event = retirement(keyId, deps.clock.now(), compromisedAt);
    const after = closedBy(record, event);
    if (after === null) return { outcome: 'unchanged', purpose, record };
    try {
      await appendUntilKnown(patient, STREAM.keys, ring.revision, envelope(deps, [event], keyId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) continue;
      throw error;
    }
    markIfPossible(deps, keyId);
    return { outcome: 'retired', purpose, record: after };
  }
}

type Retired = { readonly type: 'SigningKeyRetired'; readonly data: EventOf<'SigningKeyRetired'>['data'] };

function retirement(keyId: string, now: number, compromisedAt: number | null): Retired {
  return {
    type: 'SigningKeyRetired',
    data: {
      v: 1,
      keyId,
      reason: compromisedAt === null ? 'retired' : 'compromised',
      effectiveAt: iso(now + NOTICE_MS),
      compromisedAt: compromisedAt === null ? null : iso(compromisedAt),
      retiredAt: iso(now),
    },
  };
}

/** The key as it then is; null where the event would close nothing earlier. */
function closedBy(record: KeyRecord, event: Retired): KeyRecord | null {
  const [after = record] = evolveKeys([record], event);
  const same = after.notAfter === record.notAfter && after.compromisedAt === record.compromisedAt;
  return same ? null : after;
}

/** The log decides; the mark only tells who reads the file. */
function markIfPossible({ store, logger }: KeyOfficeDeps, keyId: string): void {
  try {
    mark(store, [keyId]);
  } catch (cause) {
    logger.warn('the key is retired, and could not be marked so in the key file', { cause });
  }
}
