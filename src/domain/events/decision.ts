// Events of a decision's stream, `decision-<decisionId>`.
import { Type } from '@sinclair/typebox';
import {
  Count,
  declareVersions,
  type EventData,
  Hex,
  Instant,
  Method,
  Nullable,
  oneOf,
  strict,
  Text,
} from '../event-fields.ts';

const Reason = Type.Object({ code: Text, message: Text }, strict);

const facts = {
  price: Text,
  network: Text,
  payTo: Nullable(Text),
  trustScore: Nullable(Type.Number()),
  recentFailureRate: Type.Number(),
  recentFinishedJobs: Count,
  /** `allowed`, the code of the refusal, or `target_unresolved_now`: DNS gave no answer. */
  policyVerdict: Text,
  method: Method,
  idempotencyKeyPresent: Type.Boolean(),
  /** How many of the caller's headers will be stripped. */
  strippedHeaders: Count,
};

/** Enough to repeat the recommendation; never the URL, headers or body of the action. */
const decision = {
  decisionId: Text,
  recommendation: oneOf('pay_and_execute', 'manual_review', 'do_not_pay'),
  confidence: oneOf('high', 'medium'),
  blockingIssues: Type.Array(Reason),
  warnings: Type.Array(Reason),
  reasons: Type.Array(Reason),
  actionHash: Hex,
  policyHash: Hex,
  buyerPolicy: Type.Object(
    {
      maxPriceUsd: Nullable(Text),
      requireReceipt: Type.Boolean(),
      requirePolicyPass: Type.Boolean(),
      requireIdempotencyKey: Type.Boolean(),
      minTrustScore: Type.Number(),
      allowedNetworks: Nullable(Type.Array(Text)),
    },
    strict,
  ),
  createdAt: Instant,
  expiresAt: Instant,
};

/** false: the read models did not answer, and the trust score, the failure rate and the jobs are unknown. */
const measured = Type.Boolean();
/** Whether the body is sent as JSON although the header content-type of the action says otherwise. */
const contentTypeDiffers = Type.Boolean();

export const DecisionRecorded = declareVersions(
  'decision',
  'createdAt',
  {
    // Of the time when decisions were made only while the read models answered.
    1: { ...decision, facts: Type.Object(facts, strict) },
    2: { ...decision, facts: Type.Object({ ...facts, measured }, strict) },
    // Of the time since which a decision warns of a body that the target may read otherwise.
    3: { ...decision, facts: Type.Object({ ...facts, measured, contentTypeDiffers }, strict) },
  },
  {
    1: (recorded) => ({
      ...recorded,
      facts: { ...recorded.facts, measured: true, contentTypeDiffers: false },
    }),
    2: (recorded) => ({ ...recorded, facts: { ...recorded.facts, contentTypeDiffers: false } }),
  },
);
export type DecisionRecorded = EventData<typeof DecisionRecorded>;
