// The pricing: what a call costs, when it is charged and when it is not.
import { type Static, Type } from '@sinclair/typebox';
import {
  addressOf,
  chargeInWords,
  type Document,
  heading,
  headingSchema,
  Path,
  paymentTerms,
  Text,
  Texts,
  termsSchema,
} from '#src/discovery/document.ts';
import { type Facts, usd } from '#src/discovery/facts.ts';
import { OPERATIONS, pathTemplate, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import type { Route } from '#src/domain/event-fields.ts';
import type { FaultCode, RefusalCode } from '#src/domain/refusal.ts';
import { Closed, HttpStatus, Link, Nullable } from '#src/domain/schema-parts.ts';

/** x402 version 2. */
const Requirement = Closed({
  scheme: Text,
  network: Text,
  amount: Type.String({ pattern: '^\\d+$', description: 'Atomic units of `asset`.' }),
  asset: Text,
  payTo: Text,
  maxTimeoutSeconds: Type.Integer(),
  extra: Type.Optional(Type.Unknown()),
});

const PaidRoute = Closed({
  actionId: Text,
  method: Text,
  path: Path,
  price: Text,
  resource: Link,
  accepts: Nullable(
    Type.Array(Requirement, { description: 'What the 402 asks for; null where nobody is charged.' }),
  ),
});

/** `at_most_once`: it may have been charged, and a repeat with the same payment header charges no more. */
const Charge = Closed({
  statuses: Type.Array(HttpStatus),
  codes: Type.Array(Type.Unsafe<RefusalCode | FaultCode>(Type.String()), {
    description: 'Of error.code; empty: every answer of these statuses.',
  }),
  charged: Type.Union([Type.Literal('once'), Type.Literal('never'), Type.Literal('at_most_once')]),
  meaning: Text,
  next: Text,
});

const Pricing = Closed({
  ...headingSchema,
  purpose: Text,
  summary: Text,
  payment: Closed({
    ...termsSchema,
    protocol: Type.Literal('x402'),
    versions: Type.Array(Type.Integer()),
    currency: Type.Literal('USD'),
    amount: Type.String({ description: 'The price as a decimal.' }),
    unit: Type.Literal('call'),
  }),
  paidRoutes: Type.Array(PaidRoute),
  freeRoutes: Type.Array(Closed({ method: Text, path: Path, summary: Text })),
  rules: Texts,
  charges: Type.Array(Charge),
  howToPay: Texts,
  buyerChecks: Texts,
});

export const pricing: Document<typeof Pricing> = {
  routes: [ROUTES.pricing],
  answer: 'The pricing.',
  schema: Pricing,
  build: (facts) => ({
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
    freeRoutes: OPERATIONS.filter(([, route]) => !route.paid && route !== ROUTES.mcp).map(
      ([, { method, path, summary }]) => ({ method, path: pathTemplate(path), summary }),
    ),
    rules: RULES,
    charges: CHARGES,
    howToPay: HOW_TO_PAY,
    buyerChecks: BUYER_CHECKS,
  }),
};

/** `accepts`: as the 402 of the route lists them (x402 version 2), `amount` in atomic units of `asset`. */
function paidRoute(facts: Facts, actionId: string, route: RouteFacts, name: Route): Static<typeof PaidRoute> {
  const { method, path } = route;
  const asked = facts.askedFor?.[name];
  return {
    actionId,
    method,
    path,
    price: facts.offer.price,
    resource: asked?.resource ?? addressOf(facts, route),
    accepts: (asked?.accepts ?? null) as Static<typeof PaidRoute>['accepts'],
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
];

const CHARGES: Static<typeof Charge>[] = [
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
      'No payment, or the payment was refused: error says why. The body and PAYMENT-REQUIRED contain the terms.',
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
    meaning: 'The payment may have been settled, and this could not be confirmed or recorded yet.',
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
];

const BUYER_CHECKS = [
  'Price or amount, network, asset and payTo are what your policy allows.',
  'The resource address is the route you are calling, below this base address.',
  'Nothing is signed where one of these differs.',
];
