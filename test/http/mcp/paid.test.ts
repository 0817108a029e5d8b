// Payment over MCP: what is required, what is presented, what is reported of the settlement (x402, transport MCP).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refused } from '#src/domain/refusal.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { fakeProtocol, UNREADABLE } from '#test/support/chain/fakes-protocol.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { connectInProcess, GENERATIONS, type McpGeneration } from '#test/support/process/mcp-client.ts';
import { decided, fakeWorld, guided, JOB, paidExecution } from '#test/support/world/http-deps.ts';
import { wiredProtocol } from './mcp-payments.ts';

const REQUEST = { url: 'https://a.example/hook', body: { n: 1 } };
const TOOLS = [
  { name: 'execute_webhook', route: 'execute/webhook', args: REQUEST },
  {
    name: 'execute_guided_webhook',
    route: 'execute/guided-webhook',
    args: { decisionId: decided().decisionId, action: REQUEST },
  },
] as const;

const PAYMENT = { x402Version: 2, payload: 'paid', note: '12,50 €' };
const PAYMENT_V1 = { x402Version: 1, payload: 'paid' };

/** As PAYMENT-SIGNATURE and X-PAYMENT carry it, and Cloudflare's withX402Client in `_meta`. */
const headerOf = (payment: object) => Buffer.from(JSON.stringify(payment)).toString('base64');

async function paidServer(
  answer: () => Execution = () => paidExecution(),
  generation: McpGeneration = '1.x',
) {
  const payments = wiredProtocol();
  const world = fakeWorld({
    settings: { mode: 'x402' },
    payments,
    execute: async () => answer(),
    executeGuided: async () => ({ ...guided(), execution: answer() }),
  });
  return { world, payments, ...(await connectInProcess(clientOf(world), undefined, generation)) };
}

for (const { name, route, args } of TOOLS) {
  for (const generation of GENERATIONS)
    test(`${name}: without a payment the result is what to pay, whatever the arguments (${generation})`, async () => {
      const { call, payments, world } = await paidServer(undefined, generation);
      for (const [given, payment] of [
        [args, undefined],
        [{}, undefined],
        [args, null],
      ] as const) {
        const { isError, structured, text, settlement } = await call(name, given, payment as undefined);
        assert.deepEqual([isError, settlement], [true, null]);
        assert.deepEqual(structured, payments.required(route, 'payment_required'));
        assert.deepEqual(JSON.parse(text), structured);
      }
      assert.deepEqual([world.executed.length, world.executedGuided.length], [0, 0]);
    });

  test(`${name}: a payment that is refused, wherever it was, is what to pay with the reason`, async () => {
    const { call, payments } = await paidServer();
    for (const payment of [
      {},
      { x402Version: 2, payload: 'other' },
      { x402Version: 1 },
      'text',
      'no header\n',
      '€',
      '',
      headerOf({ x402Version: 2, payload: 'other' }),
      5,
      [],
      false,
    ]) {
      const { isError, structured } = await call(name, args, payment as object);
      assert.deepEqual([isError, structured], [true, payments.required(route, UNREADABLE)]);
    }
    const details = { reason: 'insufficient_funds' };
    const refuse = async () => refused('payment_required', 'No.', { details });
    const world = fakeWorld({
      settings: { mode: 'x402' },
      payments: wiredProtocol(),
      execute: refuse,
      executeGuided: refuse,
    });
    const poor = await connectInProcess(clientOf(world));
    const { isError, structured } = await poor.call(name, args, PAYMENT);
    assert.deepEqual([isError, structured], [true, payments.required(route, 'insufficient_funds')]);
  });

  for (const generation of GENERATIONS)
    test(`${name}: paid in either version, as an object or as the header, delivered or not, now or before: a result with its settlement (${generation})`, async () => {
      const failed = { ...paidExecution().job, status: 'failed' } as const;
      const answers = [
        [paidExecution(), true],
        [paidExecution({ job: failed }), false],
        [paidExecution({ replay: true }), true],
        [paidExecution({ replay: true, job: failed }), false],
      ] as const;
      for (const [answer, delivered] of answers) {
        const { call, payments } = await paidServer(() => answer, generation);
        for (const payment of [PAYMENT, PAYMENT_V1])
          for (const presented of [payment, headerOf(payment)]) {
            const { isError, structured, settlement } = await call(name, args, presented);
            const { job, idempotentReplay } = structured as {
              job: { id: string };
              idempotentReplay: boolean;
            };
            assert.deepEqual([isError, job.id, idempotentReplay], [false, JOB, answer.replay]);
            const settled = payments.settlements.at(-1);
            assert.deepEqual(
              [settled?.route, settled?.x402Version, settled?.delivered],
              [route, payment.x402Version, delivered],
            );
            assert.deepEqual(settlement, { ...settled, header: payment.x402Version === 1 ? 'v1' : 'v2' });
          }
      }
    });

  test(`${name}: a paid call whose arguments are wrong is invalid_request, which is not charged`, async () => {
    const { call, payments } = await paidServer();
    const { isError, structured } = await call(name, { ...args, surprise: 1 }, PAYMENT);
    assert.deepEqual([isError, (structured.error as { code: string }).code], [true, 'invalid_request']);
    assert.equal(payments.settlements.length, 0);
  });
}

test('free tools look at no payment', async () => {
  const trace: string[] = [];
  const world = fakeWorld({ settings: { mode: 'x402' }, payments: fakeProtocol(trace) });
  const { call } = await connectInProcess(clientOf(world));
  assert.equal((await call('check_policy', REQUEST, PAYMENT)).isError, false);
  assert.equal((await call('get_job', { id: JOB }, PAYMENT)).isError, false);
  assert.deepEqual(trace, []);
});
