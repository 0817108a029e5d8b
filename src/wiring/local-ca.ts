// For the demo: the command line reaches an adapter only by way of the composition root.
export { makeLocalCa } from '../adapters/certificates/local-ca.ts';
