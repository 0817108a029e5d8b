// The keys that this process signs with: those of its key file that the event log has announced. Both are read again
// every 5 s, so that a rotation needs no restart.

import { noSigningKey, type SigningKeyHealth } from '#src/domain/monitoring/health.ts';
import { Fault } from '#src/domain/refusal.ts';
import { keyThatSigns, lastingKeys, replacedKeysThatSign, validFrom } from '#src/domain/signing-keys/keys.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { KeyStore, KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { CheckpointSigner, Signer } from '#src/ports/signer.ts';
import { repeated } from '#src/usecases/process/worker.ts';
import type { KeyDirectory } from './key-ring.ts';

type ActiveKeysDeps = {
  readonly store: KeyStore;
  readonly directory: KeyDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
};

const LOOK_MS = 5000;
const CORRECT_KEYS =
  'Correct the clock of this machine or the key file, or add a key with `relay keys rotate`';
/** Longer than a call takes from its acceptance to its receipt. */
const AHEAD_MS = 120_000;

/**
 * Throws `Fault` `no_signing_key` if no receipt key of this process is valid for the next two minutes. Called before
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
export function activeKeys({ store, directory, clock, logger }: ActiveKeysDeps, first: KeyStoreContent) {
  let content = first;
  const report = logOnce(logger);

  const receiptKey = ({ keys }: KeyStoreContent, at: number) =>
    keyThatSigns(keys, directory.list(), 'receipt', at);

  /** Takes the file's keys; returns why not. */
  function take(found: KeyStoreContent): string | null {
    if (found.secretCheck !== content.secretCheck)
      return 'the key file contains another HMAC secret now: this process keeps the keys it has';
    const now = clock.now();
    if (receiptKey(found, now) === null && receiptKey(content, now) !== null)
      return 'the key file contains no valid receipt key: this process keeps the keys it has';
    content = found;
    return null;
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
      report('file', take(store.read()));
    } catch (cause) {
      report('file', 'the key file cannot be read: this process keeps the keys it has', cause);
    }
    reportKey();
  }

  /** Unix ms at which no key is valid, of now and the time by which a call that is accepted now is receipted; null: neither. */
  function missingAt(): number | null {
    const now = clock.now();
    return [now, now + AHEAD_MS].find((at) => receiptKey(content, at) === null) ?? null;
  }

  function reportKey(): void {
    const missing = missingAt();
    if (missing === null) report('key', retiredProblem());
    else report('key', `${noSigningKey(nextKeyFrom(missing))} ${CORRECT_KEYS}`, undefined, 'error');
  }

  /** After a rotation with another machine's key file, this process signs nothing once its own key has expired. */
  function retiredProblem(): string | null {
    if (lastingKeys(content.keys, directory.list(), 'receipt').length > 0) return null;
    return 'the receipt key of this process was retired, and its key file has no other: copy the key file of the machine that rotated the keys before the own key expires';
  }

  /** From when a key is valid, if none is `at` this time (Unix ms): RFC 3339. */
  function nextKeyFrom(at: number): string | null {
    const seconds = validFrom(content.keys, directory.list(), 'receipt', at);
    return seconds === null ? null : iso(seconds * 1000);
  }

  const signer: Signer = {
    current(at = clock.now()) {
      const key = receiptKey(content, at);
      if (key !== null) return key;
      const from = nextKeyFrom(at);
      throw new Fault('no_signing_key', `${noSigningKey(from)} Nothing was sent.`, {
        details: { validFrom: from },
      });
    },
    former: (at) => receiptKey(content, at),
  };
  const checkpointSigner: CheckpointSigner = {
    current: () => keyThatSigns(content.keys, directory.list(), 'checkpoint', clock.now()),
    replacedBy: (keyId, isAccepted) =>
      replacedKeysThatSign(content.keys, directory.list(), keyId, clock.now(), isAccepted),
  };
  return {
    signer,
    checkpointSigner,
    /** Whether a call that is accepted now can be receipted. */
    health(): SigningKeyHealth {
      const missing = missingAt();
      return missing === null ? { ok: true } : { ok: false, validFrom: nextKeyFrom(missing) };
    },
    /** Reports the keys, and reads them again every 5 s until `ending` aborts; never rejects. */
    watch(ending: AbortSignalLike): Promise<void> {
      reportKey();
      const failed = { message: 'the signing keys could not be read again' };
      const deps = { clock, logger, stopping: ending };
      return repeated(deps, { firstMs: LOOK_MS, pauseMs: LOOK_MS, run: look, failed }).run();
    },
  };
}

/** Logs a problem of a topic once, until it is over (null) or another one. */
function logOnce(logger: Logger) {
  const last = new Map<string, string>();
  return (topic: string, problem: string | null, cause?: unknown, level: 'warn' | 'error' = 'warn'): void => {
    const text = problem === null ? null : `${problem} ${cause instanceof Error ? cause.message : ''}`;
    if (text === null) last.delete(topic);
    else if (problem !== null && last.get(topic) !== text) {
      last.set(topic, text);
      logger[level](problem, cause === undefined ? {} : { cause });
    }
  };
}
