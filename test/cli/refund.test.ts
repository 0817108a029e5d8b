// relay payments refund on a log without a service: what is begun, what is refused, and what the lists show of it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EXIT } from '#src/cli/exit.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import {
  type ChainNode,
  chainOfNow,
  HEAD,
  startChainNode,
  startScriptedNode,
} from '#test/support/chain/scripted-node.ts';
import {
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
  T0,
} from '#test/support/given/given-events.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import { runCli } from '#test/support/process/cli.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const DATA_DIR = testFolder('refund-test');
const env = { DATA_DIR };
const TX = `0x${hex('E')}`;
const TX_LOWER = TX.toLowerCase();
const SERVED = `payment-${hex('b')}`;
const INVENTED = `payment-${hex('c')}`;
const ABSENT = `payment-${hex('9')}`;

const { payer, asset, network, amount, payTo } = paymentReserved().data;
const { transaction } = paymentSettled().data;
const { scheme, payloadHash } = paymentReserved().data;
const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
const JOB = { mode: 'x402', payment, paymentStream: PAYMENT_STREAM } as const;

/** The chain shows the transfer of the sample charge, and not of any other. */
let chain: ChainNode;
let onChain: Record<string, string>;
after(() => chain?.[Symbol.asyncDispose]());

before(async () => {
  const { nonce } = paymentReserved().data;
  const shown = chainOfNow(T0 - 60_000);
  const moved = { from: payer, to: payTo, amount: BigInt(amount) };
  const use = { payer, nonce, validBefore: Number.POSITIVE_INFINITY };
  shown.submit('use', [moved], use, T0 - Date.now(), transaction ?? '');
  chain = await startChainNode(shown, asset);
  onChain = { ...env, X402_RPC_URL: chain.url };
  const append = (stream: string, ...events: readonly DomainEvent[]) =>
    withLog(DATA_DIR, (log) => log.append(stream, 'no_stream', events.map(newEvent)));
  const jobId = OTHER_JOB_ID;
  await append(PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await append(
    `job-${JOB_ID}`,
    jobStarted(JOB),
    jobCompleted({ status: 'failed', errorCategory: 'interrupted_unknown' }),
  );
  await append(SERVED, paymentReserved({ jobId }), paymentSettled({ jobId }));
  await append(`job-${jobId}`, jobStarted({ ...JOB, jobId }), jobCompleted({ jobId }));
  const invented = { jobId: jobCompleted().data.jobId, nonce: `0x${hex('1')}` };
  await append(INVENTED, paymentReserved(invented), paymentSettled({ jobId: invented.jobId }));
});

const refund = (...args: string[]) => runCli(['payments', 'refund', ...args], { env: onChain });
const json = async (option: string, code: number) => {
  const listed = await runCli(['payments', option, '--json'], { env });
  assert.equal(listed.code, code, listed.stderr);
  return JSON.parse(listed.stdout);
};

async function stateOf(id: string) {
  const row = (await json('--refundable', EXIT.open)).find((one: { id: string }) => one.id === id);
  return [row.state, typeof row.refundBegunAt];
}

describe('relay payments refund', () => {
  test('--refundable lists what is due, and exits with 3', async () => {
    const rows = await json('--refundable', EXIT.open);
    const row = rows.find(({ id }: { id: string }) => id === PAYMENT_STREAM);
    assert.equal(rows.length, 2);
    assert.deepEqual(
      [row.id, row.state, row.payer, row.amount, row.asset, row.network, row.transaction, row.jobId],
      [PAYMENT_STREAM, 'refundable', payer, amount, asset, network, transaction, JOB_ID],
    );
  });

  test('begin: those that can begin do, the others are named: exit 1', async () => {
    const { code, stdout, stderr } = await refund(
      'begin',
      PAYMENT_STREAM,
      SERVED,
      ABSENT,
      PAYMENT_STREAM,
      '--json',
    );
    assert.equal(code, 1);
    const due = { payer, amount, network, asset, payee: payTo, payments: [PAYMENT_STREAM] };
    assert.deepEqual(JSON.parse(stdout), [due]);
    assert.match(stderr, new RegExp(`^relay: the call of ${SERVED} was made: [^\n]+--served[^\n]+\n`));
    assert.match(stderr, new RegExp(`relay: ${ABSENT} is not in the log\n$`));
    assert.deepEqual(await stateOf(PAYMENT_STREAM), ['refunding', 'string']);
    // Stays open in the books.
    const [sums] = await json('--balance', EXIT.open);
    assert.deepEqual(
      [sums.charged, sums.served, sums.refunded, sums.open, sums.balanced],
      ['9000', '3000', '0', '6000', true],
    );
  });

  test('begin a charge without a transfer on the chain: exit 1; without an answer, by hand only, with a reason', async () => {
    const invented = await refund('begin', INVENTED, '--by-hand', '--reason', 'I am sure');
    assert.deepEqual([invented.code, invented.stdout], [1, '']);
    assert.match(invented.stderr, new RegExp(`^relay: the chain shows no transfer of ${INVENTED}: no money`));
    const dead = { ...env, X402_RPC_URL: 'http://127.0.0.1:1' };
    const begin = (...more: string[]) =>
      runCli(['payments', 'refund', 'begin', INVENTED, ...more], { env: dead });
    const silent = await begin();
    assert.deepEqual([silent.code, silent.stdout], [1, '']);
    assert.match(silent.stderr, /gives no usable answer about payment-c+: .*--by-hand/);
    for (const half of [['--by-hand'], ['--reason', 'r']]) {
      const { code, stderr } = await begin(...half);
      assert.equal(code, 2);
      assert.match(stderr, /--by-hand needs --reason/);
    }
    assert.deepEqual(await stateOf(INVENTED), ['unserved', 'object']);
    assert.equal((await begin('--by-hand', '--reason', 'An explorer shows it.', '--json')).code, 0);
    assert.deepEqual(await stateOf(INVENTED), ['refunding', 'string']);
    const unset = await runCli(['payments', 'refund', 'begin', INVENTED], { env });
    assert.deepEqual([unset.code, unset.stdout], [2, '']);
    assert.match(unset.stderr, /^relay: X402_RPC_URL is not set/);
  });

  test('begun again: the same row, as CSV too', async () => {
    const { code, stdout } = await refund('begin', PAYMENT_STREAM, '--csv');
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `payer,amount,network,asset,payee,payments\n${payer},${amount},${network},${asset},${payTo},1\n`,
    );
  });

  test('complete without a node, and with one that does not answer: exit 2, nothing is recorded', async () => {
    const unset = await runCli(['payments', 'refund', 'complete', '--tx', TX], { env });
    assert.deepEqual([unset.code, unset.stdout], [2, '']);
    assert.match(unset.stderr, /^relay: X402_RPC_URL is not set/);
    const args = ['payments', 'refund', 'complete', '--tx', TX];
    const silent = await runCli(args, { env: { ...env, X402_RPC_URL: 'http://127.0.0.1:1' } });
    assert.deepEqual([silent.code, silent.stdout], [2, '']);
    assert.match(silent.stderr, /gives no usable answer: try again; nothing is recorded/);
    const wrong = await runCli(args, {
      env: { ...env, X402_RPC_URL: 'http://127.0.0.1:1', X402_REFUND_FROM: '0x1' },
    });
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /X402_REFUND_FROM must be an address/);
  });

  test('complete a transaction whose block does not count yet: exit 1, with the number of blocks, nothing is recorded', async () => {
    const log = {
      address: asset,
      topics: [],
      data: '0x',
      blockNumber: HEAD,
      logIndex: 0,
      transactionHash: TX_LOWER,
    };
    await using node = await startScriptedNode([log]);
    const complete = (more: Record<string, string> = {}) =>
      runCli(['payments', 'refund', 'complete', '--tx', TX], {
        env: { ...env, X402_RPC_URL: node.url, ...more },
      });
    const early = await complete();
    assert.deepEqual([early.code, early.stdout], [1, '']);
    assert.match(early.stderr, /is not confirmed: wait 10 blocks and run this again; nothing is recorded/);
    const confirmed = await complete({ X402_CONFIRMATIONS: '0' });
    assert.match(confirmed.stderr, /moves nothing to a payer whose refund has begun/);
    node.faults.safe = 'unknown';
    const untagged = await complete();
    assert.deepEqual([untagged.code, untagged.stdout], [2, '']);
    assert.match(untagged.stderr, /no safe block: set X402_CONFIRMATIONS/);
  });

  test('cancel: exit 0, and 1 if nothing has begun', async () => {
    const { code, stdout } = await refund('cancel', PAYMENT_STREAM);
    assert.equal(code, 0);
    assert.match(stdout, /the refund is cancelled/);
    const again = await refund('cancel', PAYMENT_STREAM, '--json');
    assert.deepEqual([again.code, JSON.parse(again.stdout)], [1, { cancelled: [] }]);
    assert.match(again.stderr, /no refund of payment-[0-9a-f]+ has begun/);
    assert.deepEqual(await stateOf(PAYMENT_STREAM), ['refundable', 'object']);
  });
});
