// Log lines for the operator. They contain no URL, header, body, key, signature or address of a caller or destination.

import type { CodeOf, ConditionFacts, Part } from '../domain/monitoring/conditions.ts';

export interface LineLogger {
  info(message: string, fields?: LogFields): void;
  /** `cause`: the value thrown. Its stack is written to the log only. */
  warn(message: string, fields?: LogFields & { cause?: unknown }): void;
  error(message: string, fields?: LogFields & { cause?: unknown }): void;
  /**
   * A defect of this program: never a failure of a target, a caller, a store or the network. An error line with the stack
   * of `cause`, counted in `relay_internal_errors_total`. `message` says in which part; with a job, `fields` has `jobId`.
   */
  bug(message: string, fields: LogFields & { cause: unknown }): void;
}

export interface Logger extends LineLogger {
  /**
   * States what is wrong with a part of the service; null: nothing. Written when it begins and when it is over, however often
   * it is stated, and shown by `/health` and the gauges. `cause`: for the line of the beginning.
   */
  condition<P extends Part>(part: P, code: CodeOf<P> | null, facts?: ConditionFacts, cause?: unknown): void;
}

/** Lines of every single call, for LOG_LEVEL=debug. */
export interface DetailLogger {
  debug(message: string, fields?: LogFields): void;
}

export type LogFields = { readonly [name: string]: unknown };
