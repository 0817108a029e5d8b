// One request for each operation that takes a body, as the interface description shows it.

import { HANDOFF_EXAMPLE } from '#src/discovery/documents/handoff-capabilities.ts';
import { SCHEDULE_EXAMPLES } from '#src/discovery/documents/schedule-capabilities.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { BuyerPolicyRequest } from '../domain/decision/buyer-policy.ts';
import { ACTION, PAID_ROUTES } from './paid-routes.ts';
import type { ROUTES } from './routes.ts';

const DECIDE: { readonly action: WebhookRequest; readonly buyerPolicy: BuyerPolicyRequest } = {
  action: ACTION,
  buyerPolicy: { maxPriceUsd: '0.01', requireReceipt: true },
};

const EXAMPLES: Partial<Readonly<Record<keyof typeof ROUTES, unknown>>> = {
  execute: PAID_ROUTES['execute/webhook'].inputExample,
  executeGuided: PAID_ROUTES['execute/guided-webhook'].inputExample,
  decide: DECIDE,
  checkPolicy: ACTION,
  handoff: HANDOFF_EXAMPLE,
  schedulePreview: SCHEDULE_EXAMPLES[0]?.request,
  mcp: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
};

/** By operation id; undefined where an operation takes no body. */
export const requestExample = (operationId: string): unknown =>
  Object.entries(EXAMPLES).find(([id]) => id === operationId)?.[1];
