// The signing keys that this relay has announced in the event log: read, cached, and announced at the first start.

import type { KeyPurpose } from '#src/domain/events/signing-keys.ts';
import { type EventOf, event, type KeyEvent } from '#src/domain/events.ts';
import type { AnnouncedKeys } from '#src/domain/signing-keys/announced.ts';
import {
  type HeldKey,
  isUnretired,
  type KeyRecord,
  lastingKeys,
  recordOf,
} from '#src/domain/signing-keys/keys.ts';
import { iso, isoNow } from '#src/lib/iso.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { KeyStoreContent } from '#src/ports/key-store.ts';
import {
  type Decision,
  decide,
  type JournalDeps,
  KEYS,
  type Loaded,
  load,
  type View,
} from '#src/usecases/process/stream.ts';

/** The key file contains other keys or another secret than the event log: the process must not start, nor change keys. */
export class KeyMismatch extends OperatorError {}

/** The event log answers reads, and stores nothing in time. */
export class LogTakesNothing extends OperatorError {
  constructor() {
    super('the event log takes no events: the signing keys cannot be announced; start again when it does');
  }
}

export type KeyRing = AnnouncedKeys & {
  /** Of the first event, which identifies the event log; null: nothing is announced. */
  readonly logId: string | null;
};

/** Throws for an event that this release cannot read: it could be a retirement. */
export async function loadKeyRing(deps: Pick<JournalDeps, 'log'>): Promise<KeyRing> {
  const { state, events } = await load(deps, KEYS, '');
  return { ...state, logId: events.at(0)?.id ?? null };
}

/** Every key ever announced. */
export type KeyDirectory = {
  /** As last read: at most some seconds ago (`watch` of the active keys), longer while the event log is unavailable. */
  list(): readonly KeyRecord[];
  /** As in the event log now, for later calls of `list` too. Throws if the log is unavailable. */
  refresh(): Promise<readonly KeyRecord[]>;
};

/** `known`: the keys as just read. `onRead` gets the newest after each read. */
export function keyDirectory(
  deps: { readonly log: EventLog },
  known: readonly KeyRecord[],
  onRead: (keys: readonly KeyRecord[]) => void = () => undefined,
): KeyDirectory {
  let [keys, newest, reads] = [known, 0, 0];
  return {
    list: () => keys,
    async refresh() {
      const read = ++reads;
      const ring = await loadKeyRing(deps);
      // A slower read that began earlier must not replace a newer one.
      if (read > newest) [keys, newest] = [ring.keys, read];
      onRead(keys);
      return keys;
    },
  };
}

export type OwnKeys = { readonly keys: readonly HeldKey[] } & Pick<KeyStoreContent, 'secretCheck'>;

/**
 * Announces the first keys of an empty event log; otherwise requires that log and key file match. `earlier`: keys of logs
 * that were given up; they keep their windows, so that their receipts verify. Returns the ring once it has read its own
 * activations. Throws `KeyMismatch`, and `LogTakesNothing` if that takes too long.
 */
export async function activateSigningKeys(
  deps: JournalDeps,
  own: OwnKeys,
  earlier: readonly KeyRecord[] = [],
): Promise<KeyRing> {
  await decideKeys(deps, ({ state }) => {
    if (state.keys.length > 0) return { events: [], answer: null };
    const now = isoNow(deps);
    const events = [
      ...earlier.flatMap((record) => announcedBefore(record, own.secretCheck, now)),
      ...firstKeys(own, earlier).map((key) => activation(key, own.secretCheck, now)),
    ];
    return { events, answer: null };
  });
  const ring = await loadKeyRing(deps);
  demandMatch(ring, own);
  return ring;
}

/** A start and a command wait this long for an event log that is unavailable. */
const LIMIT_MS = 30_000;

/** Changes the announced keys. Throws `LogTakesNothing` if the log is unavailable for 30 s. */
export async function decideKeys<R>(
  deps: JournalDeps,
  command: (view: Loaded<AnnouncedKeys>) => Decision<KeyEvent, R> | Promise<Decision<KeyEvent, R>>,
): Promise<{ readonly view: View<AnnouncedKeys>; readonly answer: R }> {
  const { clock } = deps;
  const last = clock.monotonic() + LIMIT_MS;
  const limited: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep(ms, signal) {
      if (clock.monotonic() + ms > last) throw new LogTakesNothing();
      return clock.sleep(ms, signal);
    },
  };
  return decide({ ...deps, clock: limited }, KEYS, '', command);
}

type Announced = { readonly key: Pick<HeldKey, 'keyId' | 'x'>; readonly purpose: KeyPurpose };

/** For an empty event log: the file's first active key of each purpose that none of the earlier keys signs for. */
function firstKeys({ keys }: OwnKeys, earlier: readonly KeyRecord[]): readonly Announced[] {
  const isKnown = ({ keyId }: HeldKey) => earlier.some((record) => record.keyId === keyId);
  return KEY_PURPOSES.flatMap((purpose): readonly Announced[] => {
    if (lastingKeys(keys, earlier, purpose).length > 0) return [];
    const key = keys.find((each) => each.purpose === purpose && each.status === 'active' && !isKnown(each));
    if (key === undefined && purpose === 'receipt') throw new KeyMismatch(NO_RECEIPT_KEY);
    return key === undefined ? [] : [{ key, purpose }];
  });
}

const KEY_PURPOSES: readonly KeyPurpose[] = ['receipt', 'checkpoint'];

/** Repeats in a new event log what an earlier one recorded of the key. */
function announcedBefore(record: KeyRecord, secretCheck: string, now: string): readonly KeyEvent[] {
  const { keyId, purpose, notBefore, notAfter, compromisedAt } = record;
  const activated = activation({ key: record, purpose }, secretCheck, iso(notBefore * 1000));
  if (notAfter === null) return [activated];
  const retired = event('SigningKeyRetired', {
    keyId,
    reason: compromisedAt === null ? 'retired' : 'compromised',
    effectiveAt: iso(notAfter * 1000),
    compromisedAt: compromisedAt === null ? null : iso(compromisedAt * 1000),
    retiredAt: now,
  });
  return [activated, retired];
}

const NO_RECEIPT_KEY = 'the key file has no active key for receipts';
const ONLY_RETIRED =
  'the key file signs with a retired key: copy the key file of the process that rotated the keys, or add a key with `relay keys rotate`';

/** The file may contain keys that are not announced or retired, but needs one that may sign. Throws `KeyMismatch`. */
export function demandMatch(ring: AnnouncedKeys, own: OwnKeys): void {
  demandSameSecret(ring, own);
  const active = own.keys.filter(({ purpose, status }) => purpose === 'receipt' && status === 'active');
  if (active.length === 0) throw new KeyMismatch(NO_RECEIPT_KEY);
  const known = active.flatMap((key) => recordOf(key, ring.keys) ?? []);
  if (known.length === 0)
    throw new KeyMismatch('the key file signs with a key that this event log does not know');
  if (!known.some(isUnretired)) throw new KeyMismatch(ONLY_RETIRED);
}

/** Throws `KeyMismatch`. */
export function demandSameSecret(ring: AnnouncedKeys, { secretCheck }: Pick<OwnKeys, 'secretCheck'>): void {
  if (ring.secretChecks.has(secretCheck)) return;
  throw new KeyMismatch(
    'the key file holds another HMAC secret than the one this event log was written with',
  );
}

export function activation(
  { key, purpose }: Announced,
  secretCheck: string,
  activatedAt: string,
): EventOf<'SigningKeyActivated'> {
  const { keyId, x } = key;
  return event('SigningKeyActivated', { keyId, purpose, alg: 'EdDSA', x, secretCheck, activatedAt });
}
