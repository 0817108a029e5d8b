// The keys that this process signs with: those of its key file that the event log has announced. Both are read again
// every 5 s, so that a rotation needs no restart.
import { Fault } from '#src/domain/refusal.ts';
import { isUnretired, type KeyRecord, keyThatSigns, recordOf } from '#src/domain/signing-keys/keys.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { KeyStore, KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { CheckpointSigner, Signer } from '#src/ports/signer.ts';
import type { KeyDirectory } from './key-ring.ts';

type ActiveKeysDeps = {
  readonly store: KeyStore;
  readonly directory: KeyDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type ActiveKeys = {
  readonly signer: Signer;
  readonly checkpointSigner: CheckpointSigner;
  /** Reads again every 5 s until `ending` aborts; never rejects. */
  watch(ending: AbortSignalLike): Promise<void>;
};

const LOOK_MS = 5000;
const isOfReceipts = ({ purpose }: KeyRecord): boolean => purpose === 'receipt';
/** Longer than a call takes from its acceptance to its receipt. */
const AHEAD_MS = 120_000;

/**
 * Throws `Fault` `internal_error` if no receipt key of this process is valid for the next two minutes. Called before
 * anything is charged, because every execution needs a receipt.
 */
export function demandSigningKey({
  signer,
  clock,
}: {
  readonly signer: Signer;
  readonly clock: Pick<Clock, 'now'>;
}): void {
  const now = clock.now();
  signer.current(now);
  signer.current(now + AHEAD_MS);
}

/** `first`: the file, as just read. */
export function activeKeys(
  { store, directory, clock, logger }: ActiveKeysDeps,
  first: KeyStoreContent,
): ActiveKeys {
  let content = first;
  /** New content of the file, until one of its keys can sign. */
  let waiting: KeyStoreContent | null = null;
  const report = logOnce(logger);

  const receiptKey = ({ keys }: KeyStoreContent, at: number) =>
    keyThatSigns(keys, directory.list(), 'receipt', at);

  function take(found: KeyStoreContent | null): void {
    if (found !== null && found.secretCheck !== content.secretCheck) {
      logger.warn('the key file contains another HMAC secret now: this process keeps the keys it has');
      waiting = null;
      return;
    }
    waiting = found ?? waiting;
    if (waiting === null) return;
    const now = clock.now();
    if (receiptKey(waiting, now) === null && receiptKey(content, now) !== null) {
      report('file', 'the key file contains no valid receipt key: this process keeps the keys it has');
      return;
    }
    content = waiting;
    waiting = null;
    logger.info('the key file was read again', { keyIds: content.keys.map(({ keyId }) => keyId) });
  }

  async function look(): Promise<void> {
    try {
      await directory.refresh();
      report('log', null);
    } catch (cause) {
      // An unavailable event log is logged by its own part.
      if (!(cause instanceof EventLogUnavailable))
        report('log', 'the keys of the event log cannot be read', cause);
    }
    try {
      take(store.readIfChanged());
      if (waiting === null) report('file', null);
    } catch (cause) {
      report('file', 'the key file cannot be read: this process keeps the keys it has', cause);
    }
    report('newer', newerElsewhere());
    const lasting = receiptKey(content, clock.now() + AHEAD_MS);
    report('key', lasting === null ? 'no receipt key is valid for long enough: nothing is executed' : null);
  }

  /** After a rotation with another machine's key file, this process would sign nothing once its own key has expired. */
  function newerElsewhere(): string | null {
    const announced = directory.list();
    const isOurs = (keyId: string) => content.keys.some((key) => key.keyId === keyId);
    const own = content.keys.flatMap((key) => recordOf(key, announced) ?? []).filter(isOfReceipts);
    if (own.some(isUnretired)) return null;
    const fresh = announced.findLast((key) => isOfReceipts(key) && isUnretired(key) && !isOurs(key.keyId));
    if (fresh === undefined) return null;
    return `the keys were rotated, and the key file of this process lacks the new receipt key ${fresh.keyId}: copy the key file of the machine that rotated them before the own key expires`;
  }

  return {
    signer: {
      current(at = clock.now()) {
        const key = receiptKey(content, at);
        if (key !== null) return key;
        const message = 'This relay has no signing key that is valid for long enough: nothing was sent.';
        throw new Fault('internal_error', message);
      },
      former: (at) => receiptKey(content, at),
    },
    checkpointSigner: {
      current: () => keyThatSigns(content.keys, directory.list(), 'checkpoint', clock.now()),
    },
    async watch(ending) {
      for (;;) {
        await clock.sleep(LOOK_MS, ending);
        if (ending.aborted) return;
        await look();
      }
    },
  };
}

/** Logs a problem of a topic once, until it is over (null) or another one. */
function logOnce(logger: Logger) {
  const last = new Map<string, string>();
  return (topic: string, problem: string | null, cause?: unknown): void => {
    const text = problem === null ? null : `${problem} ${cause instanceof Error ? cause.message : ''}`;
    if (text === null) last.delete(topic);
    else if (problem !== null && last.get(topic) !== text) {
      last.set(topic, text);
      logger.warn(problem, cause === undefined ? {} : { cause });
    }
  };
}
