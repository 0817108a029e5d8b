// The register of what is wrong now, and since when. A condition is written when it begins and when it is over; `/health`, the
// gauges, the doctor and the status page read it here.
import {
  CONDITIONS,
  type CodeOf,
  type ConditionFacts,
  declared,
  type Part,
  sentenceOf,
} from '#src/domain/monitoring/conditions.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { LineLogger, Logger } from '#src/ports/logger.ts';

/** `item`: which of several of its kind; null: there is one. `since`: RFC 3339. */
export type Condition = {
  readonly part: Part;
  readonly item: string | null;
  readonly code: string;
  readonly message: string;
  readonly since: string;
  readonly facts: ConditionFacts;
};

export class Conditions {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #lines: LineLogger;
  readonly #now = new Map<string, Condition>();

  constructor(clock: Pick<Clock, 'now'>, lines: LineLogger) {
    this.#clock = clock;
    this.#lines = lines;
  }

  /** As `Logger.condition`. Another code takes the place of the one before; the same code keeps its beginning. */
  set<P extends Part>(part: P, code: CodeOf<P> | null, facts: ConditionFacts = {}, cause?: unknown): void {
    const { item = null, hint, ...shown } = facts;
    const key = item === null ? part : `${part} ${item}`;
    const before = this.#now.get(key);
    if (code === null) {
      if (before === undefined) return;
      this.#now.delete(key);
      const { since, code: ended } = before;
      this.#lines.info(CONDITIONS[part].over, { ...shown, condition: ended, since });
      return;
    }
    const isNew = before?.code !== code;
    const message = sentenceOf(part, code, facts);
    this.#now.set(key, {
      part,
      item,
      code,
      message,
      facts,
      since: isNew ? iso(this.#clock.now()) : before.since,
    });
    if (!isNew) return;
    const fields = { ...shown, condition: code, ...(cause === undefined ? {} : { cause }) };
    this.#lines[declared(part, code).level](hint === undefined ? message : `${message} ${hint}`, fields);
  }

  /** As `set`, of whichever part. */
  note(part: Part, found: { readonly code: string; readonly facts?: ConditionFacts } | null): void {
    this.set(part, (found?.code ?? null) as CodeOf<Part> | null, found?.facts);
  }

  /** What is wrong with a part; null: nothing. */
  of(part: Part): Condition | null {
    return this.#now.get(part) ?? null;
  }

  /** All that is wrong, in the order in which it began. */
  list(): readonly Condition[] {
    return [...this.#now.values()];
  }
}

/** A logger over lines, with a register of its own. */
export function loggerOver(lines: LineLogger, clock: Pick<Clock, 'now'>): Logger {
  const conditions = new Conditions(clock, lines);
  return { ...lines, condition: conditions.set.bind(conditions) };
}
