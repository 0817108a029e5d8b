// What the HTTP room is handed: closures over use cases and read models, and the settings that answers show.
// Refusals come back as data; faults are thrown as `Fault`. Wiring supplies all of it.

import type { Mode } from '#src/domain/events.ts';
import type { JwkSet } from '#src/domain/receipt/keys.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import type { Refused } from '#src/domain/refusal.ts';
import type { PolicyMode } from '#src/domain/target/policy.ts';
import type { WebhookRequest } from '#src/domain/webhook-request.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import type { Execution } from '#src/usecases/execution.ts';
import type { ExecuteInput } from '#src/usecases/execution-call.ts';
import type { PolicyCheck } from '#src/usecases/policy-check.ts';
import type { TrustsProxy } from './client-address.ts';
import type { PaymentGate } from './payment-gate.ts';
import type { JobRecord, MonitoringRecord, ProofRecord, ReceiptRecord, TrustRecord } from './records.ts';

/** Each read throws `Fault('read_models_unavailable')` where the read models are away. */
export type Reads = {
  findJob(id: string): Promise<JobRecord | null>;
  findReceipt(id: string): Promise<ReceiptRecord | null>;
  recentProofs(limit: number): Promise<readonly ProofRecord[]>;
  monitoring(windowMs: number): Promise<MonitoringRecord>;
  trust(): Promise<TrustRecord>;
  /**
   * Asked after a miss: waits, at most 1 s, until the read models have reached the log's head as it stands now.
   * `not_there`: they have; what a second read does not find does not exist.
   */
  missing(): Promise<'not_there' | 'not_caught_up'>;
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
  /** What one call costs where payment is enforced. */
  readonly offer: { readonly scheme: string; readonly network: string; readonly price: string };
  readonly policyMode: PolicyMode;
  /** The quota of one payer per target host; null where the mode has none. */
  readonly targetQuota: QuotaRule | null;
  readonly rateLimitPerMinute: number;
  readonly trustsProxy: TrustsProxy;
  /** EGRESS_ALLOW_CIDRS is set. */
  readonly egressExemption: boolean;
};

export type HttpDeps = {
  execute(input: ExecuteInput): Promise<Execution | Refused>;
  checkPolicy(input: { readonly request: WebhookRequest }): Promise<PolicyCheck | Refused>;
  verifyJob(jobId: string): Promise<VerificationReport | Refused>;
  verifyReceipt(receiptId: string): Promise<VerificationReport | Refused>;
  readonly reads: Reads;
  /** Waits until the read models have reached `position`, at most 1 s; false where they have not. */
  awaitPosition(position: string): Promise<boolean>;
  jwks(): Promise<JwkSet>;
  /** Never throws. */
  health(): Promise<HealthFacts>;
  readonly paymentGate: PaymentGate;
  readonly quota: Quota;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  readonly settings: HttpSettings;
};
