// For the paid demo: the command line reaches an adapter only by way of the composition root.
export { anvilPath } from '../adapters/local-payments/anvil-process.ts';
export { startLocalChain } from '../adapters/local-payments/chain.ts';
export { startLocalFacilitator } from '../adapters/local-payments/facilitator.ts';
