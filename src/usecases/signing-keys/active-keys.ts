// The keys that this process signs with: those of its key file that the event log has announced. Both are read again
// every 5 s, so that a rotation needs no restart.

import type { CodeOf } from '#src/domain/monitoring/conditions.ts';
import { noSigningKey, type SigningKeyHealth, validFromFact } from '#src/domain/monitoring/health.ts';
import { Fault } from '#src/domain/refusal.ts';
import {
  keyThatSigns,
  lastingKeys,
  recentKeys,
  replacedKeysThatSign,
  validFrom,
} from '#src/domain/signing-keys/keys.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { KeyStore, KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { AgentSigner, CheckpointSigner, Signer } from '#src/ports/signer.ts';
import { repeated, sharedPause } from '#src/usecases/process/worker.ts';
import type { KeyDirectory } from './key-ring.ts';

type ActiveKeysDeps = {
  readonly store: KeyStore;
  readonly directory: KeyDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
};

const LOOK_MS = 5000;
const CORRECT_KEYS =
  'Correct the clock of this machine or the key file, or add a key with `relay keys rotate`.';
/** After the end of a key; longer than a signature of an outbound request is valid. */
const AGENT_PUBLISHED_SECONDS = 300;
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

  const receiptKey = ({ keys }: KeyStoreContent, at: number) =>
    keyThatSigns(keys, directory.list(), 'receipt', at);

  /** Takes the file's keys; returns why not. */
  function take(found: KeyStoreContent): CodeOf<'keyFile'> | null {
    if (found.secretCheck !== content.secretCheck) return 'other_secret';
    const now = clock.now();
    if (receiptKey(found, now) === null && receiptKey(content, now) !== null) return 'no_receipt_key';
    content = found;
    return isRetired() ? 'retired' : null;
  }

  async function look(): Promise<void> {
    try {
      await directory.refresh();
      logger.condition('announcedKeys', null);
    } catch (cause) {
      // An unavailable event log is reported by its own part.
      if (!(cause instanceof EventLogUnavailable)) logger.condition('announcedKeys', 'unreadable', {}, cause);
    }
    try {
      logger.condition('keyFile', take(store.read()));
    } catch (cause) {
      logger.condition('keyFile', 'unreadable', {}, cause);
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
    const facts = missing === null ? {} : { ...validFromFact(nextKeyFrom(missing)), hint: CORRECT_KEYS };
    logger.condition('signingKey', missing === null ? null : 'no_signing_key', facts);
  }

  /** After a rotation with another machine's key file, this process signs nothing once its own key has expired. */
  const isRetired = (): boolean =>
    lastingKeys(content.keys, directory.list(), 'receipt').length === 0 && missingAt() === null;

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
  const agentSigner: AgentSigner = {
    current: () => receiptKey(content, clock.now())?.agentKey ?? null,
    published() {
      const recent = { at: clock.now() / 1000, seconds: AGENT_PUBLISHED_SECONDS };
      return recentKeys(content.keys, directory.list(), 'receipt', recent).flatMap(
        ({ key: { agentKey }, record: { notBefore, notAfter } }) =>
          agentKey === null ? [] : [{ key: agentKey, notBefore, notAfter }],
      );
    },
  };
  return {
    signer,
    checkpointSigner,
    agentSigner,
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
      const pauseMs = () => sharedPause(LOOK_MS, clock);
      return repeated(deps, { firstMs: LOOK_MS, pauseMs, run: look, failed }).run();
    },
  };
}
