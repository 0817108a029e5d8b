// What the read models know, as far as answers need it. A read model's row may hold more; answers never show that.
import type { ErrorCategory, Method, Mode, Phase, Sent, Timings } from '#src/domain/events.ts';

type JobStatus = 'running' | 'succeeded' | 'failed';

export type JobRecord = {
  readonly id: string;
  readonly status: JobStatus;
  readonly method: Method;
  readonly mode: Mode;
  readonly attempts: number;
  readonly attemptLog: readonly AttemptRecord[];
  /** Salted commitments, base64url. */
  readonly targetCommitment: string;
  readonly requestHash: string;
  readonly responseHash: string | null;
  readonly responseStatus: number | null;
  readonly errorCategory: ErrorCategory | null;
  readonly decisionId: string | null;
  readonly receiptId: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type AttemptRecord = {
  readonly number: number;
  readonly startedAt: string;
  readonly completedAt: string;
  readonly phase: Phase;
  readonly sent: Sent;
  readonly status: number | null;
  readonly errorCategory: ErrorCategory | null;
  readonly timings: Timings;
};

export type ReceiptRecord = {
  readonly id: string;
  readonly jobId: string;
  readonly keyId: string;
  readonly jws: string;
  /** Signature valid and key valid at issue. */
  readonly verified: boolean;
};

export type ProofRecord = {
  readonly jobId: string;
  readonly receiptId: string | null;
  readonly status: JobStatus;
  readonly method: Method;
  readonly attempts: number;
  readonly responseStatus: number | null;
  readonly receiptVerified: boolean;
  readonly errorCategory: ErrorCategory | null;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type JobStats = {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly running: number;
  readonly recentTotal: number;
  readonly recentSucceeded: number;
  readonly recentFailed: number;
  readonly recentRunning: number;
  readonly lastUpdatedAt: string | null;
};

export type MonitoringRecord = {
  readonly status: 'ok' | 'attention';
  readonly windowMs: number;
  readonly failureRate: number;
  readonly stats: JobStats;
  readonly recentFailures: readonly ProofRecord[];
  readonly projection: { readonly lagEvents: number | null; readonly lagMs: number };
};

export type TrustRecord = {
  readonly status: 'ok' | 'attention';
  readonly storage: {
    readonly driver: string;
    readonly durable: boolean;
    readonly jobs: number;
    readonly receipts: number;
  };
  readonly execution: {
    readonly windowMs: number;
    readonly recentFailureRate: number;
    readonly stats: JobStats;
  };
  readonly proofExamples: {
    readonly recentVerifiedProofs: number;
    readonly latestVerifiedProofAt: string | null;
  };
  /** 0 to 100; null where no component has data. */
  readonly trustScore: number | null;
  readonly trustComponents: readonly {
    readonly name: string;
    readonly value: number;
    readonly weight: number;
    readonly score: number;
  }[];
  readonly trustSignals: readonly string[];
};
