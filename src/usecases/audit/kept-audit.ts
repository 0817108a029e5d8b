// What an audit keeps in its state for a later one, which begins where it has ended.
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type EventRef, type Folds, foldsOf, foldsText } from './audit-folds.ts';
import type { StreamStates } from './stream-states.ts';

export type KeptAudit = ReturnType<typeof keptAudit>;

type Deps = {
  /** Absent: nothing is kept. */
  readonly state?: { readonly release: string; readonly save: () => void; readonly isNew?: boolean };
  readonly kept?: { readonly keys: unknown; readonly policy?: unknown };
};

export function keptAudit({ state, kept }: Deps, states: StreamStates) {
  const release = state?.release ?? '';
  const evidence = toHex(sha256(utf8(JSON.stringify([kept?.keys ?? null, kept?.policy ?? null]))));
  const read = state?.isNew === false ? states.demand : states.get;
  const text = state === undefined ? null : read('folds', FOLDS);
  const saved = text === null ? null : foldsOf(text);
  let last: EventRef | null = saved?.last ?? null;
  let checkpoint = saved?.checkpoint ?? null;
  let folds: string | null = null;
  return {
    release,
    /** See `Folds`. */
    evidence,
    /** Of the audit that this one continues; null: it begins with the first event. */
    saved,
    taken({ stream, revision, id, position }: RecordedEvent): void {
      last = { stream, revision: String(revision), id, position };
    },
    /** The event taken last is one. */
    checkpoint(note: string): void {
      if (last !== null) checkpoint = { ...last, note };
    },
    /** At the end of the events. null: the audit cannot be continued. */
    end(kept: Omit<Folds, 'release' | 'evidence' | 'last' | 'checkpoint'> | null): void {
      folds = kept === null ? null : foldsText({ ...kept, release, evidence, last, checkpoint });
    },
    /**
     * After `end`: keeps the state. false: it remains as it was, because the log has damaged events, which may be put back, or
     * events that only a newer release reads.
     */
    save(): boolean {
      if (folds === null) return false;
      states.put('folds', FOLDS, folds);
      state?.save();
      return true;
    },
  };
}

/** The row of `Folds`. No stream has such a name. */
const FOLDS = 'folds ';
