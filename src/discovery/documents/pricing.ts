// The pricing: what a call costs, when it is charged and when it is not.
import { addressOf, chargeText, endpointShown, openDocument, shownTerms } from '#src/discovery/document.ts';
import { usd } from '#src/discovery/facts.ts';
import { HOW_TO_PAY, HOW_TO_PAY_BY_MCP } from '#src/discovery/guidance.ts';
import { PAID_LIST } from '#src/discovery/paid-routes.ts';
import { ROUTES, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import type { FaultCode, RefusalCode } from '#src/domain/refusal.ts';

/** `at_most_once`: it may have been charged; a repeat with the same payment header is not charged again. */
type Charge = {
  readonly statuses: readonly number[];
  /** Values of error.code; absent: every answer with these statuses. */
  readonly codes?: readonly (RefusalCode | FaultCode)[];
  readonly charged: 'once' | 'never' | 'at_most_once';
  readonly meaning: string;
  readonly next: string;
};

export const pricing = openDocument([ROUTES.pricing], (facts) => ({
  purpose: 'What a call costs, when it is charged and when it is not.',
  summary: chargeText(facts),
  payment: {
    ...shownTerms(facts),
    protocol: 'x402',
    versions: [1, 2],
    currency: 'USD',
    amount: usd(facts.offer),
    unit: 'call',
  },
  paidRoutes: [
    ...PAID_LIST.map(([name, route]) => {
      const { actionId, method, path } = route;
      const { resource = addressOf(facts, route), accepts = null } = facts.askedFor?.[name] ?? {};
      // `accepts`: as the 402 of the route lists them (x402 version 2); null in demo mode.
      return { actionId, method, path, price: facts.offer.price, resource, accepts };
    }),
    // `accepts` depends on the run: its 402 lists it.
    ...(facts.schedules === undefined ? [] : SCHEDULE_PAID).map((route) => ({
      actionId: 'scheduled.webhook',
      ...endpointShown(route),
      price: facts.offer.price,
      resource: addressOf(facts, route),
      accepts: null,
    })),
  ],
  rules: facts.schedules === undefined ? RULES : [...RULES, SCHEDULE_RULE],
  charges: CHARGES.map(({ codes = [], ...charge }) => ({ ...charge, codes })),
  howToPay: [
    ...HOW_TO_PAY,
    HOW_TO_PAY_BY_MCP,
    'A payment is its authorization (network, asset, payer, nonce), whichever header carries it; it buys one call.',
  ],
}));

const SCHEDULE_PAID = [SCHEDULE_ROUTES.createSchedule, SCHEDULE_ROUTES.fundRun];

const SCHEDULE_RULE =
  'A run of a schedule costs the price of a call, of the time when it was paid for. It is settled when the run is due, and not charged if the run is skipped; a schedule itself costs nothing.';

const RULES = [
  'The price of a call does not depend on its method, size or number of attempts: up to 3 attempts of one call are charged once.',
  'A target that fails is a paid attempt: 502 with job.status failed and a signed receipt. A failure of the target is not refunded.',
  'Everything is checked before the settlement: a refused request, target or payment costs nothing.',
  'A replay (same payer, same idempotencyKey, same request; or the same payment header again) costs nothing and sends nothing.',
  'If a payment was settled and its call was not made, the call is made when the same payment header is presented again, without a new charge.',
  'An interrupted call is never sent again: it ends as failed with errorCategory interrupted_unknown and a receipt, and the operator lists it as refundable.',
  'A refund returns the whole charge to its payer. GET /api/jobs/{id} contains it as refund. From the begin of its refund on, a payment executes no call.',
];

const CHARGES: readonly Charge[] = [
  {
    statuses: [200],
    charged: 'once',
    meaning: 'The last attempt was answered 2xx. With idempotentReplay true it is not charged again.',
    next: 'Verify the receipt and keep its id.',
  },
  {
    statuses: [502],
    charged: 'once',
    meaning:
      'The target was tried and failed, or was found unsafe during the attempt (target_refused). The body is a complete execution response. With idempotentReplay true it is not charged again.',
    next: 'Read job.errorCategory and job.reason (attemptReasons of /api/errors). A new try is a new call: new idempotencyKey, new payment.',
  },
  {
    statuses: [402],
    charged: 'never',
    meaning:
      'No payment, or the payment was refused: error contains the reason. The body and PAYMENT-REQUIRED contain the terms.',
    next: 'Compare the terms with your policy, then pay.',
  },
  {
    statuses: [400, 404, 408, 413, 415, 508],
    charged: 'never',
    meaning: 'The request, its decision or its target is refused before anything was sent or settled.',
    next: 'Read error.code and correct the request; an unused payment can still be used with it.',
  },
  {
    statuses: [409],
    charged: 'never',
    meaning:
      'The decision, the idempotencyKey or the payment does not fit this request, or the first call is still running. details.paymentState: the payment of the first call with this idempotencyKey is being settled (reserved), is not confirmed yet (unconfirmed) or is being refunded (refunding), and the new payment was not taken.',
    next: 'idempotency_in_progress: wait for Retry-After and repeat the same request; with details.paymentState reserved or unconfirmed, the payment header of the first call is answered at once; with refunding, use another key. Otherwise use another key, payment or decision.',
  },
  {
    statuses: [429],
    charged: 'never',
    meaning: 'The rate limit or the quota of the target is exceeded, or too many calls are in flight.',
    next: 'Wait for Retry-After and repeat with the same payment header.',
  },
  {
    statuses: [503],
    codes: ['facilitator_unavailable'],
    charged: 'never',
    meaning: 'The payment cannot be verified now, or the node of the chain does not answer.',
    next: 'Wait for Retry-After and repeat with the same payment header.',
  },
  {
    statuses: [503],
    codes: ['payment_unconfirmed', 'event_log_unavailable'],
    charged: 'at_most_once',
    meaning: 'The payment may have been settled: this could not be confirmed or recorded yet.',
    next: 'Repeat with the same payment header, never with a new one: it is charged at most once and executed once.',
  },
  {
    statuses: [503],
    codes: ['no_signing_key'],
    charged: 'at_most_once',
    meaning:
      'This relay has no valid signing key: no call is executed, since none could be receipted. With details.links.job, the call was made before, or may have been.',
    next: 'Read details.links.job if it is there; else repeat after details.validFrom. With a payment header, repeat with the same one: it is charged at most once and executed once.',
  },
  {
    statuses: [500],
    codes: ['internal_error'],
    charged: 'at_most_once',
    meaning: 'The service failed.',
    next: 'Repeat with the same payment header: it is charged at most once and sent at most once.',
  },
];
