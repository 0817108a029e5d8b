// The operator's commands on signing keys: list, rotate, retire. The event log decides; the marks in the key file follow.

import type { KeyPurpose, SigningKeyRetired } from '#src/domain/events/signing-keys.ts';
import { type EventOf, event } from '#src/domain/events.ts';
import type { AnnouncedKeys } from '#src/domain/signing-keys/announced.ts';
import {
  evolveKeys,
  type HeldKey,
  isUnretired,
  type KeyRecord,
  keyOpenAt,
  lastingKeys,
  recordOf,
} from '#src/domain/signing-keys/keys.ts';
import { iso } from '#src/lib/iso.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type { KeyStore, StoredKey } from '#src/ports/key-store.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { activation, decideKeys, demandSameSecret, loadKeyRing } from './key-ring.ts';

export type ChangeKeysDeps = JournalDeps & { readonly store: KeyStore };

/** `unannounced`: in the file and not in the event log, so it signs nothing. */
type KeyState = 'active' | 'retiring' | 'retired' | 'compromised' | 'unannounced';

export type ListedKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly state: KeyState;
  /** RFC 3339. */
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  readonly compromisedAt: string | null;
  /** The mark in the key file; null if the key is not in it. */
  readonly inFile: HeldKey['status'] | null;
};

/** Every key of the event log and of the key file (`held`), in this order. */
export async function listKeys(
  { log, clock }: Pick<JournalDeps, 'log' | 'clock'>,
  held: readonly HeldKey[],
): Promise<readonly ListedKey[]> {
  const { keys } = await loadKeyRing({ log });
  const now = Math.floor(clock.now() / 1000);
  const announced = keys.map((key) => ({
    keyId: key.keyId,
    purpose: key.purpose,
    state: stateOf(key, now),
    ...windowOf(key),
    inFile: held.find(({ keyId }) => keyId === key.keyId)?.status ?? null,
  }));
  const unknown = { state: 'unannounced', notBefore: null, notAfter: null, compromisedAt: null } as const;
  const others = held
    .filter(({ keyId }) => !keys.some((key) => key.keyId === keyId))
    .map(({ keyId, purpose, status }) => ({ keyId, purpose, ...unknown, inFile: status }));
  return [...announced, ...others];
}

function stateOf(key: KeyRecord, now: number): KeyState {
  if (key.compromisedAt !== null) return 'compromised';
  if (key.notAfter === null) return 'active';
  return keyOpenAt(key, now) ? 'retiring' : 'retired';
}

/** The times of a key in RFC 3339. */
export function windowOf({ notBefore, notAfter, compromisedAt }: KeyRecord) {
  const text = (seconds: number | null) => (seconds === null ? null : iso(seconds * 1000));
  return { notBefore: iso(notBefore * 1000), notAfter: text(notAfter), compromisedAt: text(compromisedAt) };
}

/** Time for every process to read of a retirement, and for a running job to end with the key it began with. */
const NOTICE_MS = 600_000;

export type Rotation = {
  /** The key that replaces the others. */
  readonly keyId: string;
  /** Keys of the purpose that were retired, and until when they still sign: RFC 3339. */
  readonly retiring: readonly { readonly keyId: string; readonly effectiveAt: string }[];
};

/**
 * Replaces the keys of a purpose by a fresh one. The key file is written first, then the event log, then the file's
 * marks: a call that ends before the log has the key is completed by the next one. Throws `KeyMismatch`,
 * `LogTakesNothing`, or what the key store throws.
 */
export async function rotateKeys(deps: ChangeKeysDeps, purpose: KeyPurpose): Promise<Rotation> {
  let added: StoredKey | undefined;
  const startOf = noticeStart(deps);
  const { view, answer: fresh } = await decideKeys(deps, async ({ state: ring }) => {
    demandSameSecret(ring, deps.store.read());
    const now = deps.clock.now();
    if (added !== undefined && isAnnounced(ring, added)) return { events: [], answer: added };
    const isWaiting = (key: StoredKey) =>
      key.purpose === purpose && key.status === 'active' && !isAnnounced(ring, key);
    const content = deps.store.update(({ keys }) =>
      keys.some(isWaiting) ? null : { fresh: [purpose], retired: [] },
    );
    const key = content.keys.find(isWaiting);
    added = key;
    if (key === undefined) throw new Error('the key file lacks the key that was just added');
    const retirements: EventOf<'SigningKeyRetired'>[] = [];
    for (const { keyId } of ring.keys.filter((key) => key.purpose === purpose && isUnretired(key))) {
      const from = await startOf(keyId, now);
      retirements.push(retirement({ keyId, reason: 'rotated', compromisedAt: null }, now, from));
    }
    const events = [activation({ key, purpose }, content.secretCheck, iso(now)), ...retirements];
    return { events, answer: key };
  });
  markRetired(deps, view.state);
  const now = deps.clock.now();
  return { keyId: fresh.keyId, retiring: view.state.keys.flatMap((key) => retiringKey(key, purpose, now)) };
}

const isAnnounced = ({ keys }: AnnouncedKeys, { keyId }: StoredKey): boolean =>
  keys.some((key) => key.keyId === keyId);

function retiringKey(key: KeyRecord, purpose: KeyPurpose, now: number): Rotation['retiring'] {
  const { notAfter } = windowOf(key);
  const isRetiring = key.purpose === purpose && stateOf(key, Math.floor(now / 1000)) === 'retiring';
  return isRetiring && notAfter !== null ? [{ keyId: key.keyId, effectiveAt: notAfter }] : [];
}

export type Retirement =
  | { readonly outcome: 'retired' | 'unchanged'; readonly purpose: KeyPurpose; readonly record: KeyRecord }
  | { readonly outcome: 'unknown_key' }
  /** No other key could sign. */
  | { readonly outcome: 'only_key'; readonly purpose: KeyPurpose };

/**
 * Retires one key, effective in ten minutes, or later if the clock of a process was ahead (`noticeStart`). `compromisedAt`:
 * Unix ms, from which nothing that it signed is trusted; null: it is only no longer needed. `unchanged`: it had ended as early already. Throws `KeyMismatch`, `LogTakesNothing`,
 * or what the key store throws.
 */
export async function retireKey(
  deps: ChangeKeysDeps,
  keyId: string,
  compromisedAt: number | null,
): Promise<Retirement> {
  const startOf = noticeStart(deps);
  const { view, answer } = await decideKeys<Retirement>(deps, async ({ state: ring }) => {
    const content = deps.store.read();
    demandSameSecret(ring, content);
    const record = ring.keys.find((key) => key.keyId === keyId);
    if (record === undefined) return { events: [], answer: { outcome: 'unknown_key' } };
    const { purpose } = record;
    const others = lastingKeys(content.keys, ring.keys, purpose).filter((key) => key.keyId !== keyId);
    if (isUnretired(record) && others.length === 0)
      return { events: [], answer: { outcome: 'only_key', purpose } };
    const reason = compromisedAt === null ? 'retired' : 'compromised';
    const since = compromisedAt === null ? null : iso(compromisedAt);
    const now = deps.clock.now();
    // What a compromised key signed later is not trusted, whatever time it states.
    const from = compromisedAt === null ? await startOf(keyId, now) : now;
    const event = retirement({ keyId, reason, compromisedAt: since }, now, from);
    const keys = evolveKeys(ring.keys, event);
    const after = keys.find((key) => key.keyId === keyId) ?? record;
    if (after.notAfter === record.notAfter && after.compromisedAt === record.compromisedAt)
      return { events: [], answer: { outcome: 'unchanged', purpose, record } };
    return { events: [event], answer: { outcome: 'retired', purpose, record: after } };
  });
  if (answer.outcome === 'retired') markRetired(deps, view.state);
  return answer;
}

/** Unix ms. `from`: when the notice begins. */
function retirement(
  facts: Pick<SigningKeyRetired, 'keyId' | 'reason' | 'compromisedAt'>,
  now: number,
  from: number,
): EventOf<'SigningKeyRetired'> {
  return event('SigningKeyRetired', { ...facts, effectiveAt: iso(from + NOTICE_MS), retiredAt: iso(now) });
}

/** Where an event states a time by the clock of the process that made it. */
const STATED_AT: Readonly<Record<string, string>> = {
  ReceiptSigned: 'signedAt',
  CheckpointSigned: 'signedAt',
  JobStarted: 'startedAt',
};
const PAGE_EVENTS = 1000;
/** A clock that was ahead so recently may still be. */
const RECENT_MS = 3_600_000;

/**
 * Returns the Unix ms at which the notice of a key begins: now, or the latest time that it has signed for if a clock was
 * ahead. If a clock is ahead of the event log's, it begins later by the difference, because the process signs with this key
 * until it has read of the retirement. A retirement before that would invalidate receipts. Reads the event log once; each
 * further call reads what was appended since.
 */
function noticeStart({ log }: Pick<JournalDeps, 'log'>): (keyId: string, now: number) => Promise<number> {
  const newest = new Map<string, number>();
  let after: string | null = null;
  let aheadMs = 0;
  async function read(now: number): Promise<void> {
    for (let isLast = false; !isLast; ) {
      const options = { after, max: PAGE_EVENTS, types: Object.keys(STATED_AT) };
      const page: readonly RecordedEvent[] = await log.readAll(options);
      for (const { type, data, created } of page) {
        const [keyId, at] = [String(data.keyId), Date.parse(String(data[STATED_AT[type] ?? '']))];
        if (at > (newest.get(keyId) ?? 0)) newest.set(keyId, at);
        const storedAt = Date.parse(created);
        if (storedAt > now - RECENT_MS) aheadMs = Math.max(aheadMs, at - storedAt);
      }
      after = page.at(-1)?.position ?? after;
      isLast = page.length < PAGE_EVENTS;
    }
  }
  return async (keyId, now) => {
    await read(now);
    return Math.max(now + aheadMs, newest.get(keyId) ?? 0);
  };
}

/** Marks in the key file what the event log has retired. The event log decides, so a failure is only logged. */
function markRetired(
  { store, logger }: ChangeKeysDeps,
  { keys: announced }: Pick<AnnouncedKeys, 'keys'>,
): void {
  const isRetired = (key: StoredKey) => {
    const record = key.status === 'active' ? recordOf(key, announced) : null;
    return record !== null && !isUnretired(record);
  };
  try {
    store.update(({ keys }) => {
      const retired = keys.filter(isRetired).map(({ keyId }) => keyId);
      return retired.length === 0 ? null : { fresh: [], retired };
    });
  } catch (cause) {
    logger.warn('retired keys could not be marked in the key file', { cause });
  }
}
