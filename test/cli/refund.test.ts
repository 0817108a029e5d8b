// relay payments refund on a log without a service: what is begun, what is refused, and what the lists show of it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { EXIT } from '#src/cli/exit.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { runCli } from '#test/support/cli.ts';
import {
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
} from '#test/support/given-events.ts';

const DATA_DIR = mkdtempSync(join(tmpdir(), 'relay-refund-test-'));
after(() => rmSync(DATA_DIR, { recursive: true, force: true }));
const env = { DATA_DIR };
const TX = `0x${hex('E')}`;
const SERVED = `payment-${hex('b')}`;
const ABSENT = `payment-${hex('9')}`;

const newEvent = ({ type, data }: DomainEvent) => ({
  id: crypto.randomUUID(),
  type,
  data: JSON.parse(JSON.stringify(data)),
  metadata: {},
});
const { payer, asset, network, amount, payTo } = paymentReserved().data;
const { transaction } = paymentSettled().data;
const { scheme, payloadHash } = paymentReserved().data;
const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
const JOB = { mode: 'x402', payment, paymentStream: PAYMENT_STREAM } as const;

before(async () => {
  const log = await sqliteEventLog({ file: join(DATA_DIR, 'events.db') });
  const append = (stream: string, ...events: readonly DomainEvent[]) =>
    log.append(stream, 'no_stream', events.map(newEvent));
  const jobId = OTHER_JOB_ID;
  await append(PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await append(
    `job-${JOB_ID}`,
    jobStarted(JOB),
    jobCompleted({ status: 'failed', errorCategory: 'interrupted_unknown' }),
  );
  await append(SERVED, paymentReserved({ jobId }), paymentSettled({ jobId }));
  await append(`job-${jobId}`, jobStarted({ ...JOB, jobId }), jobCompleted({ jobId }));
  await log.close();
});

const refund = (...args: string[]) => runCli(['payments', 'refund', ...args], { env });
const json = async (option: string, code: number) => {
  const listed = await runCli(['payments', option, '--json'], { env });
  assert.equal(listed.code, code, listed.stderr);
  return JSON.parse(listed.stdout);
};

describe('relay payments refund', () => {
  test('--refundable lists what is due, and exits with 3', async () => {
    const [row, ...more] = await json('--refundable', EXIT.open);
    assert.deepEqual(more, []);
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
    const [row] = await json('--refundable', EXIT.open);
    assert.deepEqual([row.state, typeof row.refundBegunAt], ['refunding', 'string']);
    // Stays open in the books.
    const [sums] = await json('--balance', 0);
    assert.deepEqual(
      [sums.charged, sums.served, sums.refunded, sums.open, sums.balanced],
      ['6000', '3000', '0', '3000', true],
    );
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
    const unset = await refund('complete', '--tx', TX);
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

  test('cancel: exit 0, and 1 if nothing has begun', async () => {
    const { code, stdout } = await refund('cancel', PAYMENT_STREAM);
    assert.equal(code, 0);
    assert.match(stdout, /the refund is cancelled/);
    const again = await refund('cancel', PAYMENT_STREAM, '--json');
    assert.deepEqual([again.code, JSON.parse(again.stdout)], [1, { cancelled: [] }]);
    assert.match(again.stderr, /no refund of payment-[0-9a-f]+ has begun/);
    const [row] = await json('--refundable', EXIT.open);
    assert.equal(row.state, 'refundable');
  });
});
