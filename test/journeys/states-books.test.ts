// The node of the chain answers, and leaves transfers out: the payee's balance shows it, and health names the sum until the
// node shows them.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { TRANSFER } from '#test/support/chain/scripted-node.ts';
import { passThrough, type Watched } from '#test/support/world/health-states.ts';
import { send } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';

const QUICK = { X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '0' };

describe('the balance of the payee and the transfers', needsAnvil(), () => {
  let paid: PaidWorld;
  let it: Watched;
  let calls = 0;

  before(async () => {
    paid = await makePaidWorld({ embedded: true });
    const start = () => paid.start(QUICK, 'listening');
    it = {
      service: await start(),
      start,
      async call(service) {
        const [sample = assert.fail()] = await paid.samples(service, `books-${++calls}`, { count: 1 });
        return send(service, sample);
      },
    };
  });
  after(() => paid?.end());

  test('the node forgets transfers, as one of several behind an address may', async () => {
    await passThrough(it, {
      name: 'a node that forgets transfers',
      made: 'running',
      async make() {
        paid.node.rule(({ method, params }) =>
          method === 'eth_getLogs' && JSON.stringify(params).includes(TRANSFER) ? { result: [] } : 'pass',
        );
        await it.call(it.service);
      },
      seen: {
        status: 200,
        part: 'chain',
        reason: 'books_differ_from_chain',
        message: /differ by \d+ units in the blocks \d+ to \d+: .*calls are executed/,
        alert: 'RelayBooksDifferFromChain',
        logged: {
          level: 'error',
          msg: /balance of X402_PAY_TO and the transfers that the node shows differ/,
        },
        call: [200],
      },
      repaired: 'running',
      repair: () => paid.node.blind(false),
    });
  });
});
