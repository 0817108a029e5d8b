// The node of the chain answers, and its newest block stays the same: the books are not compared any further, which health
// states with the time, while calls are executed.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { rpc } from '#test/support/chain/node-front.ts';
import { ALTERED_MAIN, passThrough, type Watched } from '#test/support/world/health-states.ts';
import { send } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';

/** It stands still after the sum of this time and two intervals. */
const QUICK = { X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '0', TEST_STANDSTILL_MS: '2000' };
const BLOCK_MS = 300;

describe('the comparison with the chain stands still', needsAnvil(), () => {
  let paid: PaidWorld;
  let it: Watched;
  let mining: NodeJS.Timeout;
  let calls = 0;

  before(async () => {
    paid = await makePaidWorld({ embedded: true, spawning: { script: ALTERED_MAIN } });
    mining = setInterval(() => void paid.chain.mine(), BLOCK_MS);
    const start = () => paid.start(QUICK, 'listening');
    it = {
      service: await start(),
      start,
      async call(service) {
        const [sample = assert.fail()] = await paid.samples(service, `still-${++calls}`, { count: 1 });
        return send(service, sample);
      },
    };
  });
  after(async () => {
    clearInterval(mining);
    await paid?.end();
  });

  test('the node’s newest block stays the same', async () => {
    await passThrough(it, {
      name: 'a node that is behind',
      made: 'running',
      async make() {
        const newest = await rpc(paid.chain.url, 'eth_getBlockByNumber', 'latest', false);
        paid.node.rule(({ method, params }) =>
          method === 'eth_getBlockByNumber' && params[0] === 'latest' ? { result: newest } : 'pass',
        );
      },
      seen: {
        status: 200,
        part: 'chain',
        reason: 'not_compared',
        message: /^No block of the chain was compared with the books since \d{4}-.+Z: .*calls are executed/,
        alert: 'RelayNotReconciled',
        logged: { level: 'warn', msg: /no further block of the node of X402_RPC_URL counts/ },
        call: [200],
      },
      repaired: 'running',
      repair: () => paid.node.blind(false),
    });
  });
});
