// A process that starts a local chain, says where, and waits for its end.
import { startLocalChain } from '#src/demo/payments/chain.ts';

console.log((await startLocalChain()).url);
