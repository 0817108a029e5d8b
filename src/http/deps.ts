// What the HTTP room is handed: closures over use cases and read models, and the settings that answers show.
// Refusals come back as data; faults are thrown as `Fault`. Wiring supplies all of it.

import type { decisionQueries } from '#projections/decision/query.ts';
import type { jobQueries } from '#projections/job/query.ts';
import type { monitoringQueries } from '#projections/monitoring/query.ts';
import type { proofQueries } from '#projections/proof/query.ts';
import type { ReceiptRecord, receiptQueries } from '#projections/receipt/query.ts';
import type { trustQueries } from '#projections/trust/query.ts';
import type { PolicyMode } from '#src/domain/destination/policy.ts';
import type { Mode } from '#src/domain/event-fields.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { CheckpointStatus, Offer } from '#src/domain/monitoring/trust.ts';
import type { HandoffRequest } from '#src/domain/planning/handoff.ts';
import type { SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import type { Refused } from '#src/domain/refusal.ts';
import type { JwkSet } from '#src/domain/signing-keys/keys.ts';
import type { TrustsProxy } from '#src/http/request/client-address.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import type { DetailLogger, Logger } from '#src/ports/logger.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import type { Exposition, Figures, Tracer } from '#src/ports/telemetry.ts';
import type { Decided, DecideInput, Guided, GuidedInput } from '#src/usecases/decisions/decided.ts';
import type { PolicyCheck } from '#src/usecases/decisions/policy-check.ts';
import type { Execution } from '#src/usecases/execution/execution.ts';
import type { ExecuteInput } from '#src/usecases/execution/execution-call.ts';
import type { Handoff } from '#src/usecases/planning/hand-off-browser.ts';
import type { SchedulePreview } from '#src/usecases/planning/preview-schedule.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

/** `checkpoint`: the newest one that the receipt is in, a signed note; null: it is in none yet. */
export type ReceiptFound = ReceiptRecord & { readonly checkpoint: string | null };

/** Each throws `Fault('read_models_unavailable')` where the read models are away, within its own time limit. */
export type Reads = {
  readonly job: Pick<ReturnType<typeof jobQueries>, 'find'>;
  readonly receipt: Pick<ReturnType<typeof receiptQueries>, 'countUnverified'> & {
    find(id: string): Promise<ReceiptFound | null>;
  };
  readonly proof: Pick<ReturnType<typeof proofQueries>, 'recent' | 'recentFailures'>;
  readonly monitoring: Pick<ReturnType<typeof monitoringQueries>, 'summary' | 'series'>;
  readonly trust: Pick<ReturnType<typeof trustQueries>, 'receipts'>;
  readonly decision: Pick<ReturnType<typeof decisionQueries>, 'find' | 'recent'>;
  /** Rows that are retained now. */
  readonly store: { counts(): Promise<{ readonly jobs: number; readonly receipts: number }> };
};

/** How far the read models are; none of these throws. */
export type Progress = {
  /** Of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Whether they have reached `position`; waits for it up to `timeoutMs`. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean>;
  /** Whether they have reached the log's head as it is now, waiting up to 1 s: only then is a miss a miss. */
  reachedHead(): Promise<boolean>;
  lag(): { readonly lagEvents: number | null; readonly lagMs: number };
};

export type HealthFacts = {
  readonly eventLog: { readonly ok: boolean };
  readonly readModels: { readonly ok: boolean };
  readonly projections: { readonly ok: boolean };
  /** null: none is needed (demo mode). */
  readonly facilitator: { readonly ok: boolean } | null;
};

export type HttpSettings = {
  /** PUBLIC_BASE_URL: absolute; a trailing slash is dropped. */
  readonly baseUrl: string;
  readonly mode: Mode;
  readonly storage: { readonly driver: string; readonly durable: boolean };
  /** What one call costs where payment is enforced. */
  readonly offer: Offer;
  readonly policyMode: PolicyMode;
  /** The quota of one payer per target host; null where the mode has none. */
  readonly targetQuota: QuotaRule | null;
  readonly rateLimitPerMinute: number;
  /** Executions at the same time in this process. */
  readonly maxInFlight: number;
  /** The longest that one question to the facilitator takes; null where nobody is charged. */
  readonly facilitatorTimeoutMs: number | null;
  /** Of the read models; the log keeps all. */
  readonly retentionDays: { readonly jobs: number; readonly receipts: number };
  readonly trustsProxy: TrustsProxy;
  /** EGRESS_ALLOW_CIDRS is set. */
  readonly egressExemption: boolean;
  /** `/metrics` is for everybody, not for this machine alone. */
  readonly metricsPublic: boolean;
};

/** What is told to operators about this process. */
export type Operators = {
  readonly figures: Pick<Figures, 'requestBegun'>;
  /** null: no traces are wanted. */
  readonly tracer: Tracer | null;
  readonly detail: DetailLogger;
  /** Never throws, whatever is away. */
  exposition(): Promise<Exposition>;
};

export type HttpDeps = {
  execute(input: ExecuteInput): Promise<Execution | Refused>;
  executeGuided(input: GuidedInput): Promise<Guided | Refused>;
  decide(input: DecideInput): Promise<Decided | Refused>;
  checkPolicy(input: { readonly request: WebhookRequest }): Promise<PolicyCheck | Refused>;
  handOffBrowser(
    request: HandoffRequest,
  ): Promise<Handoff | Refused<'invalid_request' | 'invalid_handoff_actions'>>;
  previewSchedule(
    request: SchedulePreviewRequest,
  ): Promise<SchedulePreview | Refused<'invalid_request' | 'invalid_schedule'>>;
  verifyJob(jobId: string): Promise<VerificationReport | Refused>;
  verifyReceipt(receiptId: string): Promise<VerificationReport | Refused>;
  readonly reads: Reads;
  readonly progress: Progress;
  jwks(): Promise<JwkSet>;
  readonly transparency: Transparency;
  /** As this process last saw it; null: there is no transparency log, or no look at it yet. Never throws. */
  checkpointStanding(): CheckpointStatus | null;
  /** The script that the pages run: the verifier, built beforehand. */
  readonly verifyScript: string;
  /** Never throws. */
  health(): Promise<HealthFacts>;
  /** null: nobody is charged (demo mode). */
  readonly payments: PaymentProtocol | null;
  readonly quota: Quota;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  readonly operators: Operators;
  readonly settings: HttpSettings;
};
