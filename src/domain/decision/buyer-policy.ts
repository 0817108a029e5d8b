// What a buyer asks of a call before it pays: the schema of the request, and its one normal form.
import { type Static, Type } from '@sinclair/typebox';
import { strict } from '../event-fields.ts';
import type { DecisionRecorded } from './events.ts';

export const BuyerPolicyRequest = Type.Object(
  {
    maxPriceUsd: Type.Optional(
      Type.String({ pattern: '^\\d{1,9}(\\.\\d{1,6})?$', description: 'US dollars, decimal.' }),
    ),
    requireReceipt: Type.Optional(Type.Boolean({ default: true })),
    requirePolicyPass: Type.Optional(Type.Boolean({ default: true })),
    requireIdempotencyKey: Type.Optional(Type.Boolean({ default: true })),
    minTrustScore: Type.Optional(Type.Number({ minimum: 0, maximum: 100, default: 55 })),
    allowedNetworks: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        maxItems: 32,
        description: 'CAIP-2 ids, as in eip155:8453.',
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
    maxPriceUsd: policy.maxPriceUsd ?? null,
    requireReceipt: policy.requireReceipt ?? true,
    requirePolicyPass: policy.requirePolicyPass ?? true,
    requireIdempotencyKey: policy.requireIdempotencyKey ?? true,
    minTrustScore: policy.minTrustScore ?? 55,
    allowedNetworks: policy.allowedNetworks ?? null,
  };
}
