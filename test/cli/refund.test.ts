// relay payments refund, --refundable and --balance on a log without a service.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { runCli } from '#test/support/cli.ts';
import {
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
} from '#test/support/given-events.ts';

const DATA_DIR = mkdtempSync(join(tmpdir(), 'relay-refund-test-'));
after(() => rmSync(DATA_DIR, { recursive: true, force: true }));
const env = { DATA_DIR };
const TX = `0x${hex('E')}`;

const newEvent = ({ type, data }: DomainEvent) => ({
  id: crypto.randomUUID(),
  type,
  data: JSON.parse(JSON.stringify(data)),
  metadata: {},
});

before(async () => {
  const log = await sqliteEventLog({ file: join(DATA_DIR, 'events.db') });
  const interrupted = jobCompleted({ status: 'failed', errorCategory: 'interrupted_unknown' });
  await log.append(PAYMENT_STREAM, 'no_stream', [paymentReserved(), paymentSettled()].map(newEvent));
  await log.append(`job-${JOB_ID}`, 'no_stream', [jobStarted(), interrupted].map(newEvent));
  await log.close();
});

const refund = (...args: string[]) => runCli(['payments', 'refund', ...args], { env });
const json = async (option: string) =>
  JSON.parse((await runCli(['payments', option, '--json'], { env })).stdout);

describe('relay payments refund', () => {
  test('--refundable lists what a refund needs', async () => {
    const { payer, asset, network, amount } = paymentReserved().data;
    const [row, ...more] = await json('--refundable');
    const { transaction } = paymentSettled().data;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [row.id, row.payer, row.amount, row.asset, row.network, row.transaction, row.jobId],
      [PAYMENT_STREAM, payer, amount, asset, network, transaction, JOB_ID],
    );
  });

  test('without X402_RPC_URL it needs --unverified: exit 2; a malformed id or hash: exit 2', async () => {
    for (const args of [
      [PAYMENT_STREAM, '--tx', TX],
      [PAYMENT_STREAM, '--tx', '0x1'],
      ['payment-1', '--tx', TX],
      [PAYMENT_STREAM],
    ]) {
      const { code, stdout, stderr } = await refund(...args);
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      assert.match(stderr, /^relay: [^\n]+\n$/);
    }
  });

  test('--unverified is recorded once and marked so; the balance counts it as refunded', async () => {
    const first = await refund(PAYMENT_STREAM, '--tx', TX, '--unverified', '--json');
    assert.equal(first.code, 0, first.stderr);
    const { verified, transaction, refunds } = JSON.parse(first.stdout);
    assert.deepEqual([verified, transaction, refunds.length], [false, TX.toLowerCase(), 1]);
    const again = await refund(PAYMENT_STREAM, '--tx', `0x${hex('f')}`, '--unverified');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /was refunded before/);
    assert.deepEqual(await json('--refundable'), []);
    const [row] = await json('--balance');
    assert.deepEqual(
      [row.charged, row.served, row.refunded, row.open, row.balanced],
      ['3000', '0', '3000', '0', true],
    );
    const text = await runCli(['payments', '--balance'], { env });
    assert.equal(text.code, 0);
    assert.match(text.stdout, /^network +asset +charged +served +refunded +open\n/);
  });
});
