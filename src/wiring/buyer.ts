// For `relay pay` and the demo: the command line reaches an adapter only by way of the composition root.

export type { PaymentHeader, Presented, Send } from '../adapters/buyer/client.ts';
export { addressOf, present, signPayment } from '../adapters/buyer/client.ts';
export type { BuyerLimits, Finding, Terms } from '../adapters/buyer/offer.ts';
export { judgeBill, readBill } from '../adapters/buyer/offer.ts';
export type { Settlement } from '../adapters/buyer/settlement.ts';
export { paymentReceiptProblem, readSettlement } from '../adapters/buyer/settlement.ts';
export { systemClock } from '../adapters/runtime/clock.ts';
