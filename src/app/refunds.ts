// For `relay payments refund`, which reaches an adapter only through the composition root.
export { findTransfer } from '#src/adapters/payments/chain.ts';
