// The keys that this process signs with: what its key file holds and the log has announced, followed while it lives, so
// that a rotation needs no restart.

import { Fault } from '#src/domain/refusal.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { keyThatSigns } from '#src/domain/signing-keys/local-keys.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { KeyStore, KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { CheckpointSigner, Signer } from '#src/ports/signer.ts';
import type { KeyDirectory } from './key-directory.ts';

export type OwnKeysDeps = {
  readonly store: KeyStore;
  readonly directory: KeyDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type OwnKeysInUse = {
  readonly signer: Signer;
  readonly checkpointSigner: CheckpointSigner;
  /** Looks every 5 s until `ending` aborts; never rejects. */
  watch(ending: AbortSignalLike): Promise<void>;
};

const LOOK_MS = 5000;
/** Longer than any call takes from its acceptance to its receipt. */
const AHEAD_MS = 120_000;

/**
 * Throws `Fault` `internal_error` where no receipt key of this process is valid for the next two minutes: to be asked
 * before anything is charged, because what is executed must be receipted.
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

/** `content` and `announced`: as just read. */
export function ownKeys(
  { store, directory, clock, logger }: OwnKeysDeps,
  first: { readonly content: KeyStoreContent; readonly announced: readonly KeyRecord[] },
): OwnKeysInUse {
  let { content, announced } = first;
  /** What now stands in the file, until a key of it can sign. */
  let waiting: KeyStoreContent | null = null;
  const said = sayOnce(logger);

  const receiptKey = (keys: KeyStoreContent, at: number) => keyThatSigns(keys.keys, announced, 'receipt', at);

  function take(found: KeyStoreContent | null): void {
    if (found !== null && found.secretCheck !== content.secretCheck) {
      logger.warn('the key file holds another HMAC secret now: the keys at hand stay');
      waiting = null;
      return;
    }
    waiting = found ?? waiting;
    if (waiting === null) return;
    const now = clock.now();
    if (receiptKey(waiting, now) === null && receiptKey(content, now) !== null) {
      said('file', 'the key file holds no valid receipt key: the keys at hand stay');
      return;
    }
    content = waiting;
    waiting = null;
    logger.info('the key file was read again', { keyIds: content.keys.map(({ keyId }) => keyId) });
  }

  async function look(): Promise<void> {
    try {
      announced = await directory.refresh();
      said('log', null);
    } catch (cause) {
      // A log that is away is told of elsewhere.
      if (!(cause instanceof EventLogUnavailable)) said('log', 'the keys of the log cannot be read', cause);
    }
    try {
      take(store.readIfChanged());
      if (waiting === null) said('file', null);
    } catch (cause) {
      said('file', 'the key file cannot be read: the keys at hand stay', cause);
    }
    const lasting = receiptKey(content, clock.now() + AHEAD_MS);
    said('key', lasting === null ? 'no receipt key is valid for long enough: nothing is executed' : null);
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
      current: () => keyThatSigns(content.keys, announced, 'checkpoint', clock.now()),
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

/** Each trouble once, until it is over (null) or another one. */
function sayOnce(logger: Logger) {
  const last = new Map<string, string>();
  return (topic: string, trouble: string | null, cause?: unknown): void => {
    const text = trouble === null ? null : `${trouble} ${cause instanceof Error ? cause.message : ''}`;
    if (text === null) last.delete(topic);
    else if (trouble !== null && last.get(topic) !== text) {
      last.set(topic, text);
      logger.warn(trouble, cause === undefined ? {} : { cause });
    }
  };
}
