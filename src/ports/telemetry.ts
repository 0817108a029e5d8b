// What operators see from outside: figures of the process, and traces of single calls. Never a URL, header, body, key,
// payer, signature or address in either; the id of a job is public.
import type { NewEvent } from './event-log.ts';

/** How an append ended: `conflict` is another's event at its place, `unknown` an outage of the log. */
export type AppendOutcome = 'stored' | 'conflict' | 'unknown' | 'failed';

/** Counted since the process started. None of these throws. */
export interface Figures {
  /** A request has come in; call what it returns once its answer is ready. */
  requestBegun(): (answered: AnsweredRequest) => void;
  /** `seconds`: from the call to the log's answer. The events count as facts where they were stored. */
  appended(outcome: AppendOutcome, seconds: number, events: readonly NewEvent[]): void;
  /** Spans that the collector took, or that were lost. */
  spansExported(count: number, taken: boolean): void;
  /** All figures as text, with the state as it is now. */
  exposition(now: StateNow): Promise<Exposition>;
}

export type AnsweredRequest = {
  /** The pattern of the route, as in `/api/jobs/:id`, never the path that was asked for; null: no route has it. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
};

export type StateNow = {
  /** As in `sqlite+pglite`. */
  readonly storage: string;
  readonly eventLogUp: boolean;
  readonly readModelsUp: boolean;
  readonly executionsInFlight: number;
  /** `lagEvents`: null where it cannot be known. */
  readonly lag: { readonly lagEvents: number | null; readonly lagMs: number };
};

export type Exposition = { readonly contentType: string; readonly text: string };

/** A fact that is null is left out. */
export type SpanFacts = Readonly<Record<string, string | number | boolean | null>>;

/** A span while its work runs. */
export interface OpenSpan {
  /** Where the name is known only afterwards. */
  rename(name: string): void;
  tell(facts: SpanFacts): void;
  /** The work came to nothing though it threw nothing. */
  fail(): void;
}

export type SpanKind = 'server' | 'client' | 'internal';

export interface Tracer {
  /**
   * Runs `work` in a span below the one that is running here, else in the first of a new trace. It ends with the work;
   * of what the work throws nothing but the fact is told, and it is thrown on.
   */
  within<T>(name: string, kind: SpanKind, work: (span: OpenSpan) => Promise<T>): Promise<T>;
  /** Of the span that is running here, 32 hex digits; null where none is. */
  traceId(): string | null;
  /** Hands over what has ended, within two seconds, and forgets the rest. Never throws. */
  close(): Promise<void>;
}
