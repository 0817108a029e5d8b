// The transparency log as this process knows it: begun once with a checkpoint of no leaves that names it for ever, and
// followed from then on. Whether a next checkpoint may be signed it leaves to sign-checkpoint.ts.
import { STREAM } from '#src/domain/events.ts';
import { TRANSPARENCY } from '#src/domain/limits.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import { originOf } from '#src/domain/transparency/checkpoint.ts';
import { sameHash } from '#src/domain/transparency/merkle.ts';
import { EMPTY_TREE, rootOf } from '#src/domain/transparency/tree.ts';
import { EventLogUnavailable, type NewEvent, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/event-streams.ts';
import { type KeptCheckpointDeps, keptCheckpoint, ownNote } from './rollback-check.ts';
import { type CheckpointEvent, type StoredNote, signedCheckpoint, storedNote } from './signed-checkpoint.ts';

export type ReceiptLogDeps = JournalDeps &
  KeptCheckpointDeps & {
    readonly checkpointSigner: CheckpointSigner;
  };

/** The last event of the log's stream. */
export type LastCheckpoint = {
  readonly revision: bigint;
  readonly position: string;
  /** null: nobody can read it. */
  readonly stored: StoredNote | null;
};

export type ReceiptLogKeeper = {
  /** Of the log's first checkpoint, whatever this process is called; null while there is no log. */
  origin(): string | null;
  /** The newest checkpoint that this process knows of, in the log or kept elsewhere; null while there is none. */
  latest(): StoredNote | null;
  /** Where that one is kept outside of the event log, a noun with its article; null: nowhere. */
  keptIn(): string | null;
  /** What a receipt promises; null while there is no log. */
  promised(): ReceiptLog | null;
  /**
   * Begins the log where nobody has and this process has a key for it; tries once each time it is called. `host`: of the
   * base URL, with its port; that of the call before where it is left out.
   */
  begin(host?: string): Promise<void>;
  /**
   * A note that is kept at `place`, whatever the log says: it counts where it is of this log. false: that cannot be said
   * while there is no log.
   */
  learn(note: string, place: string): Promise<boolean>;
  /** What the log says now; null while there is none. Throws what a read of the log throws. */
  refresh(): Promise<LastCheckpoint | null>;
  /**
   * false: another one was signed meanwhile. Repeats until its fate is known; where this process ends before, throws
   * `EventLogUnavailable`.
   */
  append(event: CheckpointEvent, expected: bigint): Promise<boolean>;
};

type Known = {
  /** The stream exists, readable or not. */
  exists: boolean;
  origin: string | null;
  latest: StoredNote | null;
  keptIn: string | null;
};

/** Reads how it stands. Throws what a read of the log throws. */
export async function openReceiptLog(deps: ReceiptLogDeps): Promise<ReceiptLogKeeper> {
  const known: Known = { exists: false, origin: null, latest: null, keptIn: null };
  const kept = keptCheckpoint(deps);
  let recalled: Promise<void> | null = null;
  const genesis = {
    host: null as string | null,
    beginning: null as Promise<void> | null,
    told: false,
  };

  async function refresh(): Promise<LastCheckpoint | null> {
    const [last] = await deps.log.readStream(STREAM.receiptLog, { direction: 'backwards', max: 1 });
    if (last === undefined) return null;
    const { revision, position } = last;
    if (!known.exists) {
      const [first = last] = await deps.log.readStream(STREAM.receiptLog, { max: 1 });
      known.origin = storedNote(first)?.origin ?? null;
      known.exists = true;
    }
    // Before what the log says: it may have been restored from a backup that is older.
    if (known.origin !== null) {
      recalled ??= recall(known.origin);
      await recalled;
    }
    const stored = storedNote(last);
    if (stored !== null) await take(stored);
    return { revision, position, stored };
  }

  async function recall(origin: string): Promise<void> {
    const found = await kept.recall(origin);
    if (found === null) return;
    known.latest = found;
    known.keptIn = deps.checkpointKeep?.place ?? null;
  }

  /** What was given out once stays the newest: a log that no longer has it is a finding. */
  async function take(stored: StoredNote): Promise<void> {
    if (stored.origin !== known.origin) return;
    if (known.latest !== null && stored.size <= known.latest.size) return;
    // At once: the rows show it, too, and who asks later is not to be told an older one.
    Object.assign(known, { latest: stored, keptIn: null });
    const keptIn = await kept.keep(stored);
    if (known.latest === stored) known.keptIn = keptIn;
  }

  async function beginOnce(host: string): Promise<void> {
    // A log that is away keeps no service from its start: the next call tries again.
    if (!known.exists) await first(originOf(host)).catch(unlessAway);
    if (known.origin === null || known.origin === originOf(host) || genesis.told) return;
    genesis.told = true;
    const names = { named: known.origin, here: originOf(host) };
    deps.logger.warn(
      'the transparency log keeps the name that it began with, not that of this base URL',
      names,
    );
  }

  async function first(origin: string): Promise<void> {
    const key = deps.checkpointSigner.current();
    if (key === null) return;
    const head = { origin, size: 0, root: rootOf(EMPTY_TREE) };
    const event = await signedCheckpoint(head, key, deps.clock.now());
    try {
      await deps.log.append(STREAM.receiptLog, 'no_stream', enveloped(deps, event));
    } catch (error) {
      // Another's, or our own from a call before, whose answer was lost.
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
    await refresh();
  }

  await refresh();
  return {
    origin: () => known.origin,
    latest: () => known.latest,
    keptIn: () => known.keptIn,
    promised: () =>
      known.origin === null ? null : { origin: known.origin, mmdSeconds: TRANSPARENCY.mmdSeconds },
    async begin(host) {
      genesis.host = host ?? genesis.host;
      if (genesis.host === null) return;
      genesis.beginning ??= beginOnce(genesis.host).finally(() => {
        genesis.beginning = null;
      });
      await genesis.beginning;
    },
    async learn(note, place) {
      const { origin, latest } = known;
      if (origin === null) return false;
      const found = await ownNote(note, origin, deps);
      if (found !== null && !covers(latest, found)) Object.assign(known, { latest: found, keptIn: place });
      return true;
    },
    refresh,
    async append(event, expected) {
      const events = enveloped(deps, event);
      try {
        await appendUntilKnown(deps, STREAM.receiptLog, expected, events);
      } catch (error) {
        if (error instanceof WrongExpectedVersion) return false;
        throw error;
      }
      const stored = storedNote(event);
      if (stored !== null) await take(stored);
      return true;
    },
  };
}

function unlessAway(error: unknown): void {
  if (!(error instanceof EventLogUnavailable)) throw error;
}

/** The same tree, or a larger one that whoever signs proves to hold it. */
const covers = (latest: StoredNote | null, { size, root }: StoredNote): boolean =>
  latest !== null && (latest.size > size || (latest.size === size && sameHash(latest.root, root)));

const enveloped = (deps: JournalDeps, event: CheckpointEvent): NewEvent[] =>
  envelope(deps, [event], event.data.keyId);
