// What several route groups are given. Each group declares the members that it uses; `createApp` takes all of them.
import type { decisionQueries } from '#projections/decision/query.ts';
import type { jobQueries } from '#projections/job/query.ts';
import type { monitoringQueries } from '#projections/monitoring/query.ts';
import type { proofQueries } from '#projections/proof/query.ts';
import type { RecordedReceipt } from '#projections/receipt/query.ts';
import type { trustQueries } from '#projections/trust/query.ts';
import type { Deployment } from '#src/discovery/facts.ts';

/** `checkpoint`: the newest one that contains the receipt, a signed note; null: none does yet. */
export type ReceiptFound = RecordedReceipt & { readonly checkpoint: string | null };

/** Each throws `Fault('read_models_unavailable')` if the read models do not answer within its own time limit. */
export type Reads = {
  readonly job: Pick<ReturnType<typeof jobQueries>, 'find'>;
  readonly receipt: {
    countUnverified(): Promise<number>;
    find(id: string): Promise<ReceiptFound | null>;
  };
  readonly proof: Pick<ReturnType<typeof proofQueries>, 'recent' | 'recentFailures'>;
  readonly monitoring: Pick<ReturnType<typeof monitoringQueries>, 'summary' | 'totals' | 'series'>;
  readonly trust: Pick<ReturnType<typeof trustQueries>, 'receipts' | 'payments'>;
  readonly decision: Pick<ReturnType<typeof decisionQueries>, 'find' | 'recent'>;
  readonly store: { counts(): Promise<{ readonly jobs: number; readonly receipts: number }> };
};

/** Where the read models are in the event log; none of these throws. */
export type ProjectionProgress = {
  /** Of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Whether they have reached `position`; waits for it up to `timeoutMs`. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean>;
  /** Whether they have reached the log's head as it is now, waiting up to 1 s: only then is a miss a miss. */
  reachedHead(): Promise<boolean>;
  lag(): { readonly lagEvents: number | null; readonly lagMs: number };
};

/** Whether the address is one of the operator's own proxies. */
export type TrustsProxy = (address: string) => boolean;

export type HttpSettings = Deployment & {
  readonly storage: { readonly driver: string; readonly durable: boolean };
  readonly trustsProxy: TrustsProxy;
  readonly egressExemption: boolean;
  /** `/metrics` is served to every address, not to loopback only. */
  readonly metricsPublic: boolean;
};

export type Settings<K extends keyof HttpSettings> = { readonly settings: Pick<HttpSettings, K> };
export type ReadsOf<K extends keyof Reads> = { readonly reads: Pick<Reads, K> };
export type ProgressOf<K extends keyof ProjectionProgress> = {
  readonly progress: Pick<ProjectionProgress, K>;
};
