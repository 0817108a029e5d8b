// What a decision and a guided call are asked with.
import { type Static, Type } from '@sinclair/typebox';
import { strict } from '#src/domain/event-fields.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { DecisionRecorded } from '../events/decision.ts';

const DEFAULTS = {
  requireReceipt: true,
  requirePolicyPass: true,
  requireIdempotencyKey: true,
  minTrustScore: 55,
} as const;

export const BuyerPolicyRequest = Type.Object(
  {
    maxPriceUsd: Type.Optional(
      Type.String({ pattern: '^\\d{1,9}(\\.\\d{1,6})?$', description: 'US dollars, decimal.' }),
    ),
    requireReceipt: Type.Optional(Type.Boolean({ default: DEFAULTS.requireReceipt })),
    requirePolicyPass: Type.Optional(Type.Boolean({ default: DEFAULTS.requirePolicyPass })),
    requireIdempotencyKey: Type.Optional(Type.Boolean({ default: DEFAULTS.requireIdempotencyKey })),
    minTrustScore: Type.Optional(Type.Number({ minimum: 0, maximum: 100, default: DEFAULTS.minTrustScore })),
    allowedNetworks: Type.Optional(
      // Each is recorded permanently: as long as CAIP-2 has them, one byte a character.
      Type.Array(Type.String({ pattern: '^[-_:A-Za-z0-9]{1,41}$' }), {
        maxItems: 24,
        description: 'CAIP-2 ids, as the network of the price has one.',
      }),
    ),
  },
  strict,
);
export type BuyerPolicyRequest = Static<typeof BuyerPolicyRequest>;

/** As recorded: defaults filled in. */
export type BuyerPolicy = DecisionRecorded['buyerPolicy'];

export function normalisePolicy(policy: BuyerPolicyRequest): BuyerPolicy {
  return {
    ...DEFAULTS,
    maxPriceUsd: null,
    allowedNetworks: null,
    ...policy,
  };
}

export const GuidedRequest = Type.Object(
  {
    decisionId: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Of a decision that recommends pay_and_execute.',
    }),
    action: WebhookRequest,
  },
  strict,
);
export type GuidedRequest = Static<typeof GuidedRequest>;
