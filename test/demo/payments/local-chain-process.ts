// A process that starts a local chain, prints its address, and runs until it is killed.
import { startLocalChain } from '#src/demo/payments/chain.ts';

console.log((await startLocalChain()).url);
