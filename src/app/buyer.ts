// For `relay pay` and the demo: the command line reaches an adapter only by way of the composition root.

export type { PaymentHeader, Presented, Send } from '#src/adapters/buyer/client.ts';
export { addressOf, present, signPayment } from '#src/adapters/buyer/client.ts';
export type { BuyerLimits, Finding, Terms } from '#src/adapters/buyer/offer.ts';
export { judgeBill, readBill } from '#src/adapters/buyer/offer.ts';
export type { Settlement } from '#src/adapters/buyer/settlement.ts';
export { paymentReceiptProblem, readSettlement } from '#src/adapters/buyer/settlement.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';
