// The register of what is wrong now, and since when. A condition is logged when it begins and when it is over; `/health`, the
// gauges, the doctor and the status page read it here.
import {
  CONDITIONS,
  type CodeOf,
  type ConditionFacts,
  declared,
  type Part,
  sentenceOf,
} from '#src/domain/monitoring/conditions.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';

/** `since`: RFC 3339. */
export type Condition = {
  readonly part: Part;
  readonly code: string;
  readonly message: string;
  readonly since: string;
  readonly facts: ConditionFacts;
};

export class Conditions {
  readonly #deps: { readonly clock: Pick<Clock, 'now'>; readonly logger: Logger };
  readonly #now = new Map<Part, Condition>();

  constructor(deps: { readonly clock: Pick<Clock, 'now'>; readonly logger: Logger }) {
    this.#deps = deps;
  }

  /**
   * States what is wrong with a part; null: nothing. Another code takes the place of the one before; the same code keeps its
   * beginning and takes the new facts. `cause`: for the log line of the beginning.
   */
  set<P extends Part>(part: P, code: CodeOf<P> | null, facts: ConditionFacts = {}, cause?: unknown): void {
    const before = this.#now.get(part);
    if (code === null) {
      if (before === undefined) return;
      this.#now.delete(part);
      this.#deps.logger.info(CONDITIONS[part].over, { part, code: before.code, since: before.since });
      return;
    }
    const message = sentenceOf(part, code, facts);
    const isNew = before?.code !== code;
    const since = isNew ? isoNow(this.#deps) : before.since;
    this.#now.set(part, { part, code, message, since, facts });
    if (!isNew) return;
    const fields = { part, code, ...facts, ...(cause === undefined ? {} : { cause }) };
    this.#deps.logger[declared(part, code).level](message, fields);
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
