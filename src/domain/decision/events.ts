// Events of a decision's stream, `decision-<decisionId>`.
import { type Static, Type } from '@sinclair/typebox';
import { Count, Hex, Instant, Method, Nullable, strict, Text, V1 } from '../event-fields.ts';

const Reason = Type.Object({ code: Text, message: Text }, strict);

/** Enough to replay the recommendation; never the url, headers or body of the action. */
export const DecisionRecorded = Type.Object(
  {
    v: V1,
    decisionId: Text,
    recommendation: Type.Union([
      Type.Literal('pay_and_execute'),
      Type.Literal('manual_review'),
      Type.Literal('do_not_pay'),
    ]),
    confidence: Type.Union([Type.Literal('high'), Type.Literal('medium')]),
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
    facts: Type.Object(
      {
        price: Text,
        network: Text,
        payTo: Nullable(Text),
        trustScore: Nullable(Type.Number()),
        recentFailureRate: Type.Number(),
        recentFinishedJobs: Count,
        /** `allowed` or the code of the refusal. */
        policyVerdict: Text,
        method: Method,
        idempotencyKeyPresent: Type.Boolean(),
        /** How many of the caller's headers will be stripped. */
        strippedHeaders: Count,
      },
      strict,
    ),
    createdAt: Instant,
    expiresAt: Instant,
  },
  strict,
);
export type DecisionRecorded = Static<typeof DecisionRecorded>;
