// The buyer and the reader of the chain, for commands and the demo: their packages are large, so import this when it is used.
export type { Evidence, Execution, Fact } from '#src/adapters/buyer/evidence.ts';
export type { Order, PurchaseResult, Send } from '#src/adapters/buyer/purchase.ts';
export { addressOf, present, purchase } from '#src/adapters/buyer/purchase.ts';
export { findTransfer } from '#src/adapters/payments/chain.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';
