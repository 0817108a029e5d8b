// What the decision-first way is asked and answers: a recorded decision, and an execution that it approved.
import type { BuyerPolicyRequest } from '#src/domain/decision/buyer-policy.ts';
import type { DecisionRecorded } from '#src/domain/decision/events.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { Execution } from '#src/usecases/execution/execution.ts';
import type { ExecuteInput } from '#src/usecases/execution/execution-call.ts';

/** Both valid by their schemas. */
export type DecideInput = { readonly action: WebhookRequest; readonly buyerPolicy: BuyerPolicyRequest };

export type Decided = {
  readonly decision: DecisionRecorded;
  /** Of its event: links work once the read models have reached it. */
  readonly position: string;
};

export type GuidedInput = Pick<ExecuteInput, 'presented' | 'payer' | 'via'> & {
  readonly decisionId: string;
  readonly action: WebhookRequest;
};

export type Guided = {
  readonly execution: Execution;
  readonly decision: Pick<DecisionRecorded, 'decisionId' | 'recommendation' | 'confidence'>;
};
