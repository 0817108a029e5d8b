// relay payments: lists and resolves payments, also while a service runs on the same log.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Command } from 'commander';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { EXIT, exitOf } from '#src/cli/exit.ts';
import { addPayments } from '#src/cli/payments.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { runCli } from '#test/support/cli.ts';
import { hex, paymentReserved, paymentSettled, settlementUnknown } from '#test/support/given-events.ts';
import { startService } from '#test/support/service.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-payments-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const jobId = (n: number) => `job_${String(n).padStart(26, '0')}`;
const id = (n: number) => `payment-${hex(String(n))}`;
const inSeconds = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
const TRANSACTION = `0x${hex('A')}`;

const UNSERVED = [paymentReserved({ jobId: jobId(1) }), paymentSettled({ jobId: jobId(1) })];
/** Its authorization ended long ago. */
const LOST = [paymentReserved({ jobId: jobId(2) }), settlementUnknown({ jobId: jobId(2) })];
const USABLE = [
  paymentReserved({ jobId: jobId(3), validBefore: inSeconds(3600) }),
  settlementUnknown({ jobId: jobId(3) }),
];

/** A DATA_DIR whose log contains these streams. */
async function dataWith(name: string, ...payments: readonly (readonly DomainEvent[])[]) {
  const DATA_DIR = join(folder, name);
  const log = await sqliteEventLog({ file: join(DATA_DIR, 'events.db') });
  for (const [i, events] of payments.entries())
    await log.append(id(i + 1), 'no_stream', events.map(newEvent));
  await log.close();
  return { DATA_DIR };
}
const newEvent = ({ type, data }: DomainEvent) => ({
  id: crypto.randomUUID(),
  type,
  data: JSON.parse(JSON.stringify(data)),
  metadata: {},
});
async function stored({ DATA_DIR }: { DATA_DIR: string }, stream: string) {
  const log = await sqliteEventLog({ file: join(DATA_DIR, 'events.db') });
  const events = await log.readStream(stream);
  await log.close();
  return events;
}

const row = (n: number, state: string) => {
  const { payer, network, asset, amount } = paymentReserved().data;
  const transaction = state === 'unserved' ? paymentSettled().data.transaction : null;
  const since = paymentSettled().data.settledAt;
  return { id: id(n), state, payer, network, asset, amount, transaction, jobId: jobId(n), since };
};

describe('relay payments', () => {
  test('without a log it cannot run, and creates none', async () => {
    const DATA_DIR = join(folder, 'nowhere');
    for (const args of [[], ['--json'], ['resolve', id(1), '--not-settled']]) {
      const { code, stdout, stderr } = await runCli(['payments', ...args], { env: { DATA_DIR } });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: there is no event log at [^\n]+events\.db: DATA_DIR [^\n]+\n$/);
    }
    assert.equal(existsSync(DATA_DIR), false);
  });

  test('no open payments: an empty array; as text no row, and a sentence on standard error; exit 0', async () => {
    const env = await dataWith('empty');
    assert.deepEqual(await runCli(['payments', '--json'], { env }), { code: 0, stdout: '[]\n', stderr: '' });
    for (const [args, stderr] of [
      [[], 'No such payment is open.\n'],
      [['--unserved'], 'No such payment is open.\n'],
      [['--refundable'], 'No such payment is open.\n'],
      [['--unknown'], 'No such payment is open.\n'],
      [['--refundable', '--unknown'], 'No such payment is open.\n'],
    ] as const)
      assert.deepEqual(await runCli(['payments', ...args], { env }), { code: 0, stdout: '', stderr });
  });

  test('--json, or one line for each: all payments, or the selected states', async () => {
    const env = await dataWith('listed', UNSERVED, LOST);
    const cases: readonly [readonly string[], readonly object[]][] = [
      [[], [row(1, 'unserved'), row(2, 'unknown')]],
      [['--unserved'], [row(1, 'unserved')]],
      [['--unknown'], [row(2, 'unknown')]],
      [
        ['--unserved', '--unknown'],
        [row(1, 'unserved'), row(2, 'unknown')],
      ],
    ];
    for (const [args, rows] of cases) {
      const { code, stdout, stderr } = await runCli(['payments', ...args, '--json'], { env });
      assert.deepEqual([code, JSON.parse(stdout), stderr], [0, rows, '']);
    }
    const { stdout } = await runCli(['payments', '--unknown'], { env });
    const { since, amount, payer } = row(2, 'unknown');
    assert.equal(stdout, `unknown ${since} ${amount} ${payer} ${jobId(2)} - ${id(2)}\n`);
  });

  test('a service that runs on the log continues, and does not block the command', async () => {
    const env = await dataWith('served', UNSERVED, LOST);
    // Its read models are unavailable: they take time to open, and the commands read the log only.
    const service = await startService({ ...env, DATABASE_URL: 'postgres://user@127.0.0.1:1/none' });
    try {
      const listed = await runCli(['payments', '--json'], { env });
      assert.deepEqual(JSON.parse(listed.stdout), [row(1, 'unserved'), row(2, 'unknown')]);
      const resolved = await runCli(['payments', 'resolve', id(2), '--not-settled'], { env });
      assert.deepEqual([resolved.code, resolved.stderr], [0, '']);
      assert.equal((await fetch(`${service.url}/health`)).status, 200);
    } finally {
      const { code } = await service.stop();
      assert.equal(code, 0);
    }
    assert.equal((await stored(env, id(2))).at(-1)?.type, 'PaymentRejected');
  });
});

describe('relay payments resolve', () => {
  test('--settled TX: recorded in lower case, printed with the next step, then listed as unserved', async () => {
    const env = await dataWith('settled', LOST);
    const args = ['payments', 'resolve', id(1), '--settled', TRANSACTION];
    const { code, stdout, stderr } = await runCli(args, { env });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(
      stdout,
      new RegExp(`^${id(1)} is recorded as settled \\(job job_0+2\\)\\.\n.*without a new charge`),
    );
    const { data } = (await stored(env, id(1))).at(-1) ?? {};
    assert.deepEqual([data?.transaction, data?.evidence], [TRANSACTION.toLowerCase(), 'operator']);
    const [listed] = JSON.parse((await runCli(['payments', '--json'], { env })).stdout);
    assert.deepEqual([listed.state, listed.transaction], ['unserved', TRANSACTION.toLowerCase()]);
    const again = await runCli(args, { env });
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.equal(again.stderr, `relay: nothing to resolve: ${id(1)} is settled\n`);
  });

  test('--settled alone, --json', async () => {
    const env = await dataWith('nameless', LOST);
    const { code, stdout } = await runCli(['payments', 'resolve', id(1), '--settled', '--json'], { env });
    assert.equal(code, 0);
    const { next, ...rest } = JSON.parse(stdout);
    assert.deepEqual(rest, { id: id(1), jobId: jobId(2), kind: 'settled', transaction: null });
    assert.match(next, /same payment header/);
  });

  test('--not-settled: too early while the authorization can be used, and nothing is recorded', async () => {
    const env = await dataWith('early', USABLE);
    const { code, stdout, stderr } = await runCli(['payments', 'resolve', id(1), '--not-settled'], { env });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^relay: too early: .* until \d{4}-\d\d-\d\dT[^\n]+\n$/);
    assert.equal((await stored(env, id(1))).length, USABLE.length);
  });

  test('a payment that is not in the log', async () => {
    const env = await dataWith('unheard', LOST);
    const { code, stderr } = await runCli(['payments', 'resolve', id(9), '--not-settled'], { env });
    assert.deepEqual([code, stderr], [1, `relay: nothing to resolve: ${id(9)} is not in the log\n`]);
  });

  const unrunnable: readonly (readonly string[])[] = [
    [],
    [id(1)],
    [id(1), '--settled', '--not-settled'],
    [id(1), '--settled', '0x1234'],
    [id(1), '--settled', `0x${hex('g')}`],
    ['payment-1', '--not-settled'],
    [jobId(1), '--not-settled'],
    [id(1), id(2), '--not-settled'],
  ];
  for (const args of unrunnable) {
    test(`resolve ${args.join(' ').replace(/(\d)\1{20,}/g, '$1…')} cannot run: exit 2`, async () => {
      const program = new Command().exitOverride().configureOutput({ outputError: () => undefined });
      addPayments(program);
      const run = program.parseAsync(['payments', 'resolve', ...args], { from: 'user' });
      await assert.rejects(run, (error) => exitOf(error) === EXIT.couldNotRun);
    });
  }
});
