// Metrics of the process and traces of single calls. Neither contains a URL, header, body, key, payer, signature or
// address; the id of a job is public.

import type { HealthReport } from '#src/domain/monitoring/health.ts';
import type { WitnessesStatus } from '#src/domain/monitoring/witnesses.ts';
import type { OpenState } from '../domain/payment/ledger.ts';
import type { NewEvent } from './event-log.ts';

/** Result of an append. `conflict`: wrong expected revision. `unknown`: the event log is unavailable. */
export type AppendOutcome = 'stored' | 'conflict' | 'unknown' | 'failed';

/** Counted since the process started. None of these throws. */
export interface Figures {
  /** Counts a request that has arrived. Call the returned function once its response is ready. */
  requestBegun(): (answered: AnsweredRequest) => void;
  /** `seconds`: from the call to the log's answer. The events are counted if they were stored. */
  appended(outcome: AppendOutcome, seconds: number, events: readonly NewEvent[]): void;
  /** Counts a defect of this program (`Logger.bug`). */
  internalError(): void;
  /** All metrics as text, with the current state. */
  exposition(now: StateNow): Promise<Exposition>;
}

export type AnsweredRequest = {
  /** The pattern of the route, as in `/api/jobs/:id`, never the requested path; null if no route matches. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
};

/** `oldestSeconds`: how long the oldest of them has been in this state; 0 without one. */
export type OpenPayments = {
  readonly payments: number;
  readonly units: number;
  readonly oldestSeconds: number;
};

/** What monitoring shows of payments. Units are atomic. */
export type PaymentFigures = {
  /** Sums of the configured asset. */
  readonly units: Readonly<
    Record<
      'charged' | 'served' | 'refunded' | 'open' | 'missing' | 'corrected' | 'received' | 'unattributed',
      number
    >
  >;
  /** As in `relay payments --balance`. */
  readonly balanced: boolean;
  /** Of the payee's balance from the transfers in the blocks that are compared; 0: none. */
  readonly differenceUnits: number;
  readonly open: Readonly<Record<OpenState, OpenPayments>>;
  /** The last block that was compared with the books, and its time (Unix); null: none yet. */
  readonly reconciled: { readonly block: number; readonly timeSeconds: number } | null;
};

/** What the embedded stores take on a disk of this machine. */
export type DiskUse = {
  readonly freeBytes: number;
  readonly logBytes: number;
  /** null: the read models are on a server. */
  readonly readModelsBytes: number | null;
  /** Of the event log, by its own events of the last 7 days; null: not known yet. */
  readonly growthBytesPerDay: number | null;
};

export type StateNow = {
  /** As in `sqlite+pglite`. */
  readonly storage: string;
  /** The state of each part; null: not used. */
  readonly checks: HealthReport['checks'];
  /** All that is wrong now. */
  readonly conditions: readonly { readonly part: string; readonly code: string }[];
  /** `scrubbedAt`: when all stored events were last read to find damage, Unix ms; null: not yet. */
  readonly eventLog: { readonly damagedEvents: number; readonly scrubbedAt: number | null };
  /** null: the events are on a server's disk, or this one cannot be read. */
  readonly disk: DiskUse | null;
  /** The newest of the transparency log; `signedAt`: RFC 3339, null if it is not known. null: there is none. */
  readonly checkpoint: {
    readonly size: number;
    readonly signedAt: string | null;
    /** How long the oldest leaf that it does not cover has waited. */
    readonly waitingMs: number;
  } | null;
  readonly executionsInFlight: number;
  /** Jobs of dead processes whose closing fails. */
  readonly unclosableJobs: number;
  /** `lagEvents`: null if it is unknown. */
  readonly lag: { readonly lagEvents: number | null; readonly lagMs: number };
  /** null in demo mode, and until the event log was read once. */
  readonly payments: PaymentFigures | null;
  /** null: the transparency log has none. */
  readonly witnesses: WitnessesStatus | null;
};

export type Exposition = { readonly contentType: string; readonly text: string };

/** Attributes of a span. Those that are null are omitted. */
export type SpanFacts = Readonly<Record<string, string | number | boolean | null>>;

/** A span whose work is running. */
export interface OpenSpan {
  /** For a name that is known only after the start. */
  rename(name: string): void;
  setAttributes(facts: SpanFacts): void;
  /** Marks the span as failed although its work threw nothing. */
  fail(): void;
}

export type SpanKind = 'server' | 'client' | 'internal';

export interface Tracer {
  /**
   * Runs `work` in a child of the current span, or in the root span of a new trace. The span ends with the work. An error
   * of the work marks the span as failed, without its text, and is thrown again.
   */
  within<T>(name: string, kind: SpanKind, work: (span: OpenSpan) => Promise<T>): Promise<T>;
  /** Trace id of the current span, 32 hex digits; null if there is none. */
  traceId(): string | null;
  /** Exports the ended spans within two seconds, and drops the rest. Never throws. */
  close(): Promise<void>;
}
