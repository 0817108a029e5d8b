// Refuses a start and a command without the event log that was in use: a missing, empty or other log knows none of the calls
// that were answered, and a repeat of one would be sent and charged again. `--begin-new-log` gives that log up.
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { logMemoryFile } from '#src/adapters/event-log/log-memory-file.ts';
import { keyFileMemory, readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { LogConfig } from '#src/config.ts';
import { STREAM } from '#src/domain/events.ts';
import { type KeyRecord, strictestOf } from '#src/domain/signing-keys/keys.ts';
import {
  contradictionOf,
  type KnownLog,
  type LogEvidence,
  successorName,
} from '#src/domain/signing-keys/known-log.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { sizeOf } from '#src/lib/files/durable.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { LogMemory } from '#src/ports/log-memory.ts';
import type { Logger } from '#src/ports/logger.ts';
import { findEvent } from '#src/usecases/process/read-events.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { demandMatch, loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { startError } from './start-errors.ts';

/** The event log at hand is not the one in use: the process must not start, and no command may use it. */
export class NotTheLogInUse extends OperatorError {}

export type LogHistory = ReturnType<typeof logHistory>;

type InDataDir = Pick<LogConfig, 'dataDir'>;

export const checkpointPath = ({ dataDir }: InDataDir): string => join(dataDir, 'checkpoint.note');
/** Of the embedded event log. */
export const eventLogPath = ({ dataDir }: InDataDir): string => join(dataDir, 'events.db');
/** What is remembered of the event log beside the key file. */
export const logMemoryPath = ({ dataDir }: InDataDir): string => join(dataDir, 'event-log.json');

/**
 * Reads what is remembered, before the event log is read: what is remembered then, the log has. `begin`: give the log in use
 * up if the one at hand is another. `unreadable`: what to do with a memory that cannot be read. Throws what that throws.
 */
export function logHistory(
  config: LogConfig,
  {
    begin = false,
    unreadable = (error) => {
      throw error;
    },
  }: { readonly begin?: boolean; readonly unreadable?: (error: unknown) => null } = {},
) {
  const { eventStoreUrl, keyFile } = config;
  const memories: readonly LogMemory[] = [keyFileMemory(keyFile.path), logMemoryFile(logMemoryPath(config))];
  const notePath = checkpointPath(config);
  const embedded = eventStoreUrl === null ? eventLogPath(config) : null;
  const logName = embedded === null ? 'the event log of EVENTSTORE_URL' : `event log ${embedded}`;

  const attempt = <T>(place: string, read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      return unreadable(startError(error, place));
    }
  };
  const found = memories.flatMap(({ place, read }) => {
    const log = attempt(place, read);
    return log === null ? [] : [{ place, log }];
  });
  let earlier = Math.max(0, ...found.map(({ log }) => log.earlier));
  let keys = strictestOf(found.flatMap(({ log }) => log.keys));
  const evidence: readonly LogEvidence[] = [
    ...found.flatMap(({ place, log: { id } }) => (id === null ? [] : [{ place, id, origin: null }])),
    ...(attempt(notePath, () => noteEvidence(notePath)) ?? []),
  ];

  if (begin && evidence.length === 0) throw notNeeded('no event log was in use here before');

  function refusal(is: 'missing' | 'empty' | 'other', places: readonly string[]): NotTheLogInUse {
    const verb = places.length === 1 ? 'shows' : 'show';
    const fact = {
      missing: `${logName} is missing, and ${places.join(' and ')} ${verb} that one was in use`,
      empty: `${logName} is empty, and ${places.join(' and ')} ${verb} that another one was in use`,
      other: `${logName} is not the one that was in use, as ${places.join(' and ')} ${verb}`,
    }[is];
    const back =
      embedded === null ? 'correct EVENTSTORE_URL, or restore its backup' : 'put it back from its backup';
    return new NotTheLogInUse(
      `${fact}: without it, calls that were answered would be sent and charged again. To mend it, ${back} (with EVENTSTORE_URL, DATA_DIR and SIGNING_KEYS_FILE as before); if that log is lost, "relay serve --begin-new-log" states what is lost with it, and begins a new one`,
    );
  }

  const contradiction = async (log: EventLog) => {
    const [first] = await log.readStream(STREAM.keys, { max: 1 });
    const origin = embedded === null ? null : await originIn(log);
    return contradictionOf({ id: first?.id ?? null, origin }, evidence);
  };

  return {
    /** Of the logs that were given up; the next log announces them with their windows. */
    earlierKeys: (): readonly KeyRecord[] => keys,
    successor: (id: string | null) => successorName({ id, earlier }),
    /**
     * Before the embedded log is opened, which creates a missing file and deletes the -wal of an empty one. Throws
     * `NotTheLogInUse`.
     */
    beforeOpening(file: string): void {
      const size = sizeOf(file);
      if (evidence.length === 0 || (size !== null && size > 0)) return;
      const places = evidence.map(({ place }) => place);
      if (!begin) throw refusal(size === null ? 'missing' : 'empty', places);
      for (const tail of ['-wal', '-shm']) setAside(`${file}${tail}`);
    },
    /** Throws `NotTheLogInUse`. */
    async demandLogInUse(log: EventLog): Promise<void> {
      const wrong = await contradiction(log);
      if (wrong !== null) throw refusal(wrong.is, wrong.places);
    },
    /** Gives the log in use up. Throws `NotTheLogInUse` if the one at hand is it, or `KeyMismatch`. */
    async giveUp(log: EventLog, logger: Logger, print: (text: string) => void): Promise<void> {
      const wrong = await contradiction(log);
      if (wrong === null) throw notNeeded(`${logName} is the one in use`);
      const ring = await loadKeyRing({ log });
      if (ring.logId !== null) demandMatch(ring, readKeyFile(keyFile.path));
      print(meaningOf(wrong.places, keys));
      // The key file is the last: until then every start is refused.
      const aside = setAside(notePath);
      earlier += 1;
      const next = { id: null, earlier, keys: [...keys] };
      const known = memories.filter(({ place }) => found.some((one) => one.place === place));
      if (known.length === 0) writeFirst(memories, next);
      else for (const { write } of known.toReversed()) write(next);
      logger.warn('the event log that was in use is given up: a new one begins', { checkpoint: aside });
    },
    /** Remembers the log in use, where that can be written. Never throws. */
    remember: rememberer(memories, (id, now) => {
      keys = now;
      return { id, earlier, keys: [...now] };
    }),
  };
}

const RETRY_MS = 60_000;

/**
 * Writes it, if it has changed since it was written; called with every look at the keys. Repeats a failed write after a
 * minute; logs once that it cannot be written, and that it is.
 */
function rememberer(
  memories: readonly LogMemory[],
  logOf: (id: string, keys: readonly KeyRecord[]) => KnownLog,
) {
  let written = '';
  let failedAt: number | null = null;
  return (
    id: string,
    keys: readonly KeyRecord[],
    { clock, logger }: Pick<JournalDeps, 'clock' | 'logger'>,
  ): void => {
    const log = logOf(id, keys);
    const text = JSON.stringify(log);
    const now = clock.monotonic();
    if (text === written || (failedAt !== null && now - failedAt < RETRY_MS)) return;
    try {
      writeFirst(memories, log);
      logger.condition('logMemory', null);
      written = text;
      failedAt = null;
    } catch (cause) {
      const places = memories.map(({ place }) => place).join(', ');
      logger.condition('logMemory', 'unwritable', { places }, cause);
      failedAt = now;
    }
  };
}

/** To the first memory that can be written, unless it has it. Throws the last one's error. */
function writeFirst(memories: readonly LogMemory[], log: KnownLog): void {
  const text = JSON.stringify(log);
  let failure: unknown = null;
  for (const { read, write } of memories) {
    try {
      if (JSON.stringify(read()) !== text) write(log);
      return;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

const notNeeded = (why: string) =>
  new NotTheLogInUse(`--begin-new-log is not needed: ${why}; start without it`);

function noteEvidence(path: string): readonly LogEvidence[] {
  if (!existsSync(path)) return [];
  const head = parseCheckpoint(readFileSync(path, 'utf8'));
  return head === null ? [] : [{ place: path, id: null, origin: head.origin }];
}

async function originIn(log: EventLog): Promise<string | null> {
  const [first] = await log.readStream(STREAM.receiptLog, { max: 1 });
  const event = first === undefined ? null : findEvent(first);
  return event?.type === 'CheckpointSigned' ? event.data.origin : null;
}

/** Renames the file if there is one; returns its new path. */
function setAside(path: string): string | null {
  if (!existsSync(path)) return null;
  const aside = `${path}.${new Date().toISOString().replace(/[-:.]/g, '')}`;
  renameSync(path, aside);
  return aside;
}

const meaningOf = (places: readonly string[], keys: readonly KeyRecord[]): string => `\
The event log that was in use is given up (shown by ${places.join(' and ')}):
- Its idempotency keys and payments are unknown from now on: a call that was answered is sent again if it is repeated, and
  charged again if the repeat pays with a new payment.
- Its payments cannot be resumed, looked up or refunded here. Find what is owed in an export, a backup or on the chain.
- Its receipts verify as before. ${
  keys.length === 0
    ? 'The windows of its keys are not known here: use the key set that their holders have saved.'
    : 'The new log publishes the keys that signed them.'
}
- Checkpoints begin again. If the log at hand has none, its transparency log gets a name of its own, so that it does not
  pretend to continue the old one: proofs of the old one end, and anyone who kept a checkpoint can prove that it did.
Nothing is deleted: the last checkpoint is kept under another name beside its place.`;
