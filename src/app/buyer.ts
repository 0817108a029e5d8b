// For `relay pay` and the demo, which reach an adapter only through the composition root.
export type { Evidence, Fact } from '#src/adapters/buyer/evidence.ts';

export type { Finding, Terms } from '#src/adapters/buyer/offer.ts';
export type { Order, PurchaseResult, Send } from '#src/adapters/buyer/purchase.ts';
export { addressOf, present, purchase } from '#src/adapters/buyer/purchase.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';
