// The pricing: what a call costs, when it is charged and when it is not.

import { type Facts, usd } from '#src/discovery/facts.ts';
import { pathTemplate, type RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { Route } from '#src/domain/event-fields.ts';
import type { FaultCode, RefusalCode } from '#src/domain/refusal.ts';
import { addressOf, chargeInWords, heading, paymentTerms } from './document-parts.ts';

export function pricingDocument(facts: Facts) {
  return {
    ...heading(facts),
    purpose: 'What a call costs, when it is charged and when it is not.',
    summary: chargeInWords(facts),
    payment: {
      ...paymentTerms(facts),
      protocol: 'x402',
      versions: [1, 2],
      currency: 'USD',
      amount: usd(facts.offer),
      unit: 'call',
    },
    paidRoutes: [
      paidRoute(facts, 'execute.webhook', ROUTES.execute, 'execute/webhook'),
      paidRoute(facts, 'execute.guided_webhook', ROUTES.executeGuided, 'execute/guided-webhook'),
    ],
    // Not the MCP server: some of its tools are paid.
    freeRoutes: Object.values<RouteFacts>(ROUTES)
      .filter((route) => route.listed && !route.paid && route !== ROUTES.mcp)
      .map(({ method, path, summary }) => ({ method, path: pathTemplate(path), summary })),
    rules: RULES,
    charges: CHARGES,
    howToPay: HOW_TO_PAY,
    buyerChecks: BUYER_CHECKS,
  };
}

/** `accepts`: as the 402 of the route lists them (x402 version 2), `amount` in atomic units of `asset`. */
function paidRoute(facts: Facts, actionId: string, route: RouteFacts, name: Route) {
  const { method, path } = route;
  const asked = facts.askedFor?.[name];
  return {
    actionId,
    method,
    path,
    price: facts.offer.price,
    resource: asked?.resource ?? addressOf(facts, route),
    accepts: asked?.accepts ?? null,
  };
}

const RULES = [
  'One price for a call, whatever its method, size or number of attempts: up to 3 attempts of one call are one charge.',
  'The payment is settled before the call, because the effect of a call cannot be undone.',
  'A target that fails is a paid attempt: 502 with job.status failed and a signed receipt. There is no refund for what the target does.',
  'Everything is judged before the settlement: a refused request, target or payment costs nothing.',
  'A replay (same payer, same idempotencyKey, same request; or the same payment header again) costs nothing and sends nothing.',
  'A payment that was settled and whose call was not made yet makes it when the same payment header is presented again, without a new charge.',
  'A call that was interrupted in the middle is never sent again: it ends as failed with errorCategory interrupted_unknown and a receipt, and the operator lists it as refundable.',
] as const;

/** `charged`: of this answer. `at_most_once`: it may have been, and a repeat with the same payment header charges no more. */
type Charge = {
  readonly statuses: readonly number[];
  /** Of the error body; empty: every one, or there is none. */
  readonly codes: readonly (RefusalCode | FaultCode)[];
  readonly charged: 'once' | 'never' | 'at_most_once';
  readonly meaning: string;
  readonly next: string;
};

const CHARGES: readonly Charge[] = [
  {
    statuses: [200],
    codes: [],
    charged: 'once',
    meaning:
      'The last attempt was answered 2xx. With idempotentReplay true it is a replay: not charged again.',
    next: 'Verify the receipt and keep its id.',
  },
  {
    statuses: [502],
    codes: [],
    charged: 'once',
    meaning:
      'The target was tried and failed, or was found unsafe at the attempt itself (target_refused). The body is a whole execution response. With idempotentReplay true it is not charged again.',
    next: 'Read job.errorCategory. A new try is a new call: new idempotencyKey, new payment.',
  },
  {
    statuses: [402],
    codes: [],
    charged: 'never',
    meaning:
      'No payment, or the payment was refused: error says why. The body and PAYMENT-REQUIRED tell the terms.',
    next: 'Compare the terms with your policy, then pay.',
  },
  {
    statuses: [400, 404, 408, 413, 415, 508],
    codes: [],
    charged: 'never',
    meaning: 'The request, its decision or its target is refused before anything was sent or settled.',
    next: 'Read error.code and mend the request; an unused payment still works with it.',
  },
  {
    statuses: [409],
    codes: [],
    charged: 'never',
    meaning:
      'The decision, the idempotencyKey or the payment does not fit this request, or the first call still runs.',
    next: 'idempotency_in_progress: wait Retry-After and repeat as it was. Else use another key, payment or decision.',
  },
  {
    statuses: [429],
    codes: [],
    charged: 'never',
    meaning: 'Rate limited, the quota of the target is spent, or too many calls are in flight.',
    next: 'Wait Retry-After and repeat with the same payment header.',
  },
  {
    statuses: [503],
    codes: ['facilitator_unavailable'],
    charged: 'never',
    meaning: 'The payment could not be verified now. There is no free service meanwhile.',
    next: 'Wait Retry-After and repeat with the same payment header.',
  },
  {
    statuses: [503],
    codes: ['payment_unconfirmed', 'event_log_unavailable'],
    charged: 'at_most_once',
    meaning: 'The payment may have been settled, and nobody could confirm or record it yet.',
    next: 'Repeat with the same payment header, never with a new one: it is charged at most once and executed once.',
  },
  {
    statuses: [500],
    codes: ['internal_error'],
    charged: 'at_most_once',
    meaning: 'The service failed.',
    next: 'Repeat with the same payment header: it is charged at most once and sent at most once.',
  },
];

const HOW_TO_PAY = [
  'Send the call without a payment: 402 is answered before the body is judged.',
  'Version 2: terms in the header PAYMENT-REQUIRED, payment in PAYMENT-SIGNATURE, result in PAYMENT-RESPONSE.',
  'Version 1: terms in the JSON body, payment in X-PAYMENT, result in X-PAYMENT-RESPONSE.',
  'By MCP: payment in _meta["x402/payment"], result in _meta["x402/payment-response"].',
  'A payment is its authorization (network, asset, payer, nonce), whichever header carries it; it buys one call.',
] as const;

const BUYER_CHECKS = [
  'Price or amount, network, asset and payTo are what your policy allows.',
  'The resource address is the route you are calling, below this base address.',
  'Nothing is signed where one of these differs.',
] as const;
