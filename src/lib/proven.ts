// Whether a part works, proven by its use or by a probe: an answer to a cheaper question proves nothing.

export type ProvenOptions = {
  /** What callers need of the part; throws if it does not work. */
  readonly probe: () => Promise<void>;
  /** ms for which success of a use or of the probe is believed. */
  readonly goodMs: number;
  /** ms for which a failure of the probe is believed. */
  readonly badMs: number;
  /** Failures of one kind are one state. Without it all are. */
  readonly kindOf?: (cause: unknown) => string;
  /** Called when the state changes. null: it works. */
  readonly changed?: (failure: Failure | null) => void;
  /** Monotonic, ms. */
  readonly now?: () => number;
};

export type Failure = { readonly cause: unknown };

export type Proven = {
  worked(): void;
  /** A use of the part failed as if the part did not work: the next check probes it. No effect while a failure is known. */
  failed(cause: unknown): void;
  /** null: the part works. Probes if neither a success nor a failed probe is recent; calls at the same time share one probe. */
  check(): Promise<Failure | null>;
};

export function proven({
  probe,
  goodMs,
  badMs,
  kindOf = () => '',
  changed = () => undefined,
  now = () => performance.now(),
}: ProvenOptions): Proven {
  let failure: Failure | null = null;
  let knownAt = Number.NEGATIVE_INFINITY;
  let probing: Promise<Failure | null> | null = null;

  const stateOf = (one: Failure | null) => one && `failed ${kindOf(one.cause)}`;
  function note(next: Failure | null): Failure | null {
    knownAt = now();
    const isChange = stateOf(next) !== stateOf(failure);
    failure = next;
    if (isChange) changed(next);
    return next;
  }
  async function probed(): Promise<Failure | null> {
    try {
      await probe();
      return note(null);
    } catch (cause) {
      return note({ cause });
    } finally {
      probing = null;
    }
  }
  return {
    worked: () => void note(null),
    failed(cause) {
      if (failure !== null) return;
      note({ cause });
      // One use may fail for a reason of its own.
      knownAt = Number.NEGATIVE_INFINITY;
    },
    async check() {
      if (now() - knownAt < (failure === null ? goodMs : badMs)) return failure;
      probing ??= probed();
      return probing;
    },
  };
}
