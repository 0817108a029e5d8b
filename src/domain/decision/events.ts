// Events of a decision's stream, `decision-<decisionId>`.
import { type Static, type TLiteral, type TObject, type TProperties, Type } from '@sinclair/typebox';
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
  V1,
} from '../event-fields.ts';

const Reason = Type.Object({ code: Text, message: Text }, strict);

const facts = {
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
};

/** Enough to repeat the recommendation; never the URL, headers or body of the action. */
const decision = <V extends TLiteral<number>, F extends TProperties>(v: V, of: TObject<F>) =>
  Type.Object(
    {
      v,
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
      facts: of,
      createdAt: Instant,
      expiresAt: Instant,
    },
    strict,
  );

/** Of the time when decisions were made only while the read models answered. */
const version1 = decision(V1, Type.Object(facts, strict));
const version2 = decision(
  Type.Literal(2),
  Type.Object(
    {
      ...facts,
      /** false: the read models did not answer, and the trust score, the failure rate and the jobs are unknown. */
      measured: Type.Boolean(),
    },
    strict,
  ),
);

export const DecisionRecorded = declareVersions({
  stream: 'decision',
  time: 'createdAt',
  versions: { 1: version1, 2: version2 },
  upcast: {
    1: (data: Static<typeof version1>): Static<typeof version2> => ({
      ...data,
      v: 2,
      facts: { ...data.facts, measured: true },
    }),
  },
});
export type DecisionRecorded = EventData<typeof DecisionRecorded>;
