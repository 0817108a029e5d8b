// The names of the schemas in the interface description (`components.schemas`): generated clients use them as type names.
import type { TSchema } from '@sinclair/typebox';
import { GuidedRequest } from '#src/domain/decision/requests.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { PaidSchedule, ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { ChallengeBody, ErrorBody } from './response/errors.ts';
import { ExecutionResponse, GuidedResponse } from './response/execution-response.ts';
import { DecideRequest, DecisionResponse, DecisionSummaryShown } from './routes/decisions.ts';
import { HealthResponse } from './routes/health.ts';
import { JobResponse, ReceiptResponse } from './routes/jobs.ts';
import { MonitoringResponse, TrustResponse } from './routes/monitoring.ts';
import { PolicyCheckResponse } from './routes/policy.ts';
import { ProofSummary } from './routes/proofs.ts';
import { BoughtResponse, CancelResponse, RunShown, ScheduleResponse } from './routes/schedules.ts';
import { VerificationResponse } from './routes/verify.ts';

/** Of a deployment with paid schedules, also. */
export const SCHEDULE_SCHEMA_NAMES: Readonly<Record<string, TSchema>> = {
  Schedule: PaidSchedule,
  ScheduleRequest,
  ScheduleRun: RunShown,
  ScheduleBought: BoughtResponse,
  ScheduleStatus: ScheduleResponse,
  ScheduleCancelled: CancelResponse,
};

export const SCHEMA_NAMES: Readonly<Record<string, TSchema>> = {
  WebhookRequest,
  GuidedRequest,
  DecideRequest,
  ExecutionResponse,
  GuidedResponse,
  PaymentRequired: ChallengeBody,
  ErrorBody,
  Decision: DecisionResponse,
  DecisionSummary: DecisionSummaryShown,
  PolicyCheck: PolicyCheckResponse,
  Job: JobResponse,
  Receipt: ReceiptResponse,
  ReceiptPayload,
  VerificationReport: VerificationResponse,
  ProofSummary,
  Monitoring: MonitoringResponse,
  Trust: TrustResponse,
  Health: HealthResponse,
};
