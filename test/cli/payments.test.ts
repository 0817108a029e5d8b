// relay payments: lists and resolves payments, also while a service runs on the same log.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Command } from 'commander';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { createKeyFile, readKeyFile } from '#src/adapters/signing/key-file.ts';
import { EXIT, exitOf } from '#src/cli/exit.ts';
import { addPayments } from '#src/cli/payments.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { claimOfKey } from '#src/usecases/execution/execution-call.ts';
import {
  hex,
  jobCompleted,
  jobStarted,
  keyClaimed,
  paymentRejected,
  paymentReserved,
  paymentSettled,
  settlementCorrected,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startService } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('payments-test');

const jobId = (n: number) => `job_${String(n).padStart(26, '0')}`;
const id = (n: number) => `payment-${hex(String(n))}`;
const inSeconds = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
const TRANSACTION = `0x${hex('A')}`;

const UNSERVED = [paymentReserved({ jobId: jobId(1) }), paymentSettled({ jobId: jobId(1) })];
/** Its authorization ended long ago. */
const LOST = [paymentReserved({ jobId: jobId(2) }), settlementUnknown({ jobId: jobId(2) })];
const REJECTED = [paymentReserved({ jobId: jobId(4) }), paymentRejected({ jobId: jobId(4) })];
const USABLE = [
  paymentReserved({ jobId: jobId(3), validBefore: inSeconds(3600) }),
  settlementUnknown({ jobId: jobId(3) }),
];

/** A DATA_DIR whose log contains these streams. */
async function dataWith(name: string, ...payments: readonly (readonly DomainEvent[])[]) {
  const DATA_DIR = join(folder, name);
  for (const [i, events] of payments.entries()) await add({ DATA_DIR }, id(i + 1), events);
  return { DATA_DIR };
}
type Data = { readonly DATA_DIR: string };
const add = ({ DATA_DIR }: Data, stream: string, events: readonly DomainEvent[]) =>
  withLog(DATA_DIR, (log) => log.append(stream, 'no_stream', events.map(newEvent)));
const stored = ({ DATA_DIR }: Data, stream: string) => withLog(DATA_DIR, (log) => log.readStream(stream));

const row = (n: number, state: string) => {
  const { payer, network, asset, amount, nonce, validBefore, reservedAt } = paymentReserved().data;
  const { transaction, settledAt } = paymentSettled().data;
  const isSettled = state === 'unserved';
  return {
    id: id(n),
    state,
    payer,
    network,
    asset,
    amount,
    nonce,
    validBefore,
    transaction: isSettled ? transaction : null,
    refundTransaction: null,
    jobId: jobId(n),
    since: settledAt,
    reservedAt,
    settledAt: isSettled ? settledAt : null,
    refundBegunAt: null,
    refundedAt: null,
    statedTransaction: null,
  };
};
const REASON = 'Two explorers show it.';
const BY_HAND = ['--by-hand', '--reason', REASON];
/** No node answers there. */
const NOWHERE = { X402_RPC_URL: 'http://127.0.0.1:1' };

describe('relay payments', () => {
  test('no open payments: an empty array; as text no row, and a sentence on standard error; exit 0', async () => {
    const DATA_DIR = join(folder, 'empty');
    await withLog(DATA_DIR, async () => undefined);
    const env = { DATA_DIR };
    assert.deepEqual(await runCli(['payments', '--json'], { env }), { code: 0, stdout: '[]\n', stderr: '' });
    for (const [args, stderr] of [
      [[], 'Nothing is open.\n'],
      [['--unserved', '--refundable', '--unknown', '--missing'], 'No payment matches these options.\n'],
      [['--all'], 'No payment is recorded.\n'],
      [['--sum', 'day'], 'No payment was charged in this time.\n'],
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
      // The refund of the first is due, whatever is listed.
      assert.deepEqual([code, JSON.parse(stdout), stderr], [EXIT.open, rows, '']);
    }
    const { stdout } = await runCli(['payments', '--unknown'], { env });
    const { since, payer } = row(2, 'unknown');
    assert.deepEqual(
      stdout.split('\n').map((line) => line.split(/ {2,}/)),
      [
        ['state', 'since', 'amount', 'payer', 'job', 'transaction', 'refund', 'id'],
        ['unknown', since, '$0.003 USDC', payer, jobId(2), '-', '-', id(2)],
        [''],
      ],
    );
  });

  test('--corrected: the real transaction, and the one that was stated; the payee that paid itself is listed, and in no sum', async () => {
    const corrected = [...UNSERVED, settlementCorrected({ jobId: jobId(1) })];
    const [reserved, settled] = [
      paymentReserved({ jobId: jobId(2), payer: paymentReserved().data.payTo }),
      paymentSettled({ jobId: jobId(2) }),
    ];
    const env = await dataWith('corrected', corrected, [reserved, settled]);
    const { transaction } = settlementCorrected().data;
    const stated = paymentSettled().data.transaction;
    const expected = { ...row(1, 'unserved'), transaction, statedTransaction: stated };
    const listed = await runCli(['payments', '--corrected', '--json'], { env });
    assert.deepEqual(JSON.parse(listed.stdout), [expected]);
    const { stdout } = await runCli(['payments', '--corrected'], { env });
    assert.ok(stdout.includes(` ${transaction}(stated:${stated}) `), stdout);
    const all = await runCli(['payments', '--all', '--json'], { env });
    assert.deepEqual(
      JSON.parse(all.stdout).map(({ state }: { state: string }) => state),
      ['unserved', 'self_paid'],
    );
    const [sums] = JSON.parse((await runCli(['payments', '--balance', '--json'], { env })).stdout);
    assert.deepEqual([sums.charged, sums.open, sums.corrected], ['3000', '3000', '3000']);
  });

  test('--all, --csv, --since and --until: every field, and the time of the charge, or else of the reservation', async () => {
    const env = await dataWith('all', UNSERVED, REJECTED, LOST);
    const csv = await runCli(['payments', '--all', '--csv'], { env });
    assert.equal(csv.code, EXIT.open);
    const [header, ...lines] = csv.stdout.trim().split('\n');
    assert.equal(header, Object.keys(row(1, 'unserved')).join(','));
    assert.equal(
      lines[0],
      Object.values(row(1, 'unserved'))
        .map((cell) => cell ?? '')
        .join(','),
    );
    assert.deepEqual(
      lines.map((line) => line.split(',')[1]),
      ['unserved', 'rejected', 'unknown'],
    );
    const json = await runCli(['payments', '--all', '--json'], { env });
    assert.deepEqual(JSON.parse(json.stdout)[0], row(1, 'unserved'));
    const { settledAt, reservedAt } = row(1, 'unserved');
    const listed = async (...args: string[]) => {
      const { stdout } = await runCli(['payments', '--json', ...args], { env });
      return JSON.parse(stdout).map(({ state }: { state: string }) => state);
    };
    assert.deepEqual(await listed('--since', settledAt ?? ''), ['unserved']);
    assert.deepEqual(await listed('--since', reservedAt, '--until', settledAt ?? ''), ['unknown']);
    assert.deepEqual(await listed('--all', '--until', '2026-01-02'), []);
    assert.deepEqual(await listed('--all', '--since', '2026-01-02', '--until', '2026-01-03'), [
      'unserved',
      'rejected',
      'unknown',
    ]);
  });

  test('--payer, --transaction, --job, --key: the payments of any state that have it, with each other and with the states', async () => {
    const payer = '0x5555555555555555555555555555555555555555';
    const transaction = `0x${hex('c')}`;
    const other = [
      paymentReserved({ jobId: jobId(2), payer }),
      paymentSettled({ jobId: jobId(2), transaction }),
    ];
    const env = await dataWith('selected', UNSERVED, other, REJECTED);
    const keyFile = join(env.DATA_DIR, 'keys.json');
    createKeyFile(keyFile);
    const { hmacSecret } = readKeyFile(keyFile);
    const claimed = claimOfKey(hmacKeyedHash(hmacSecret), payer, 'order 7');
    await add(env, claimed, [keyClaimed({ jobId: jobId(2), paymentStream: id(2) })]);
    const { payer: unserved } = paymentReserved().data;
    for (const [args, ids] of [
      [['--payer', payer], [id(2)]],
      [['--payer', `0x${payer.slice(2).toUpperCase()}`], [id(2)]],
      [
        ['--payer', unserved],
        [id(1), id(3)],
      ],
      [['--payer', unserved, '--unserved'], [id(1)]],
      [['--transaction', transaction], [id(2)]],
      [['--job', jobId(4)], [id(3)]],
      [['--job', jobId(9)], []],
      [['--key', 'order 7'], [id(2)]],
      [['--key', 'order 7', '--payer', unserved], []],
      [['--key', 'order 8'], []],
    ] as const) {
      const { stdout, stderr } = await runCli(['payments', ...args, '--json'], { env });
      assert.deepEqual(
        JSON.parse(stdout).map((found: { id: string }) => found.id),
        ids,
        `${args.join(' ')} ${stderr}`,
      );
    }
    const none = await runCli(['payments', '--job', jobId(9)], { env });
    assert.deepEqual(
      [none.code, none.stdout, none.stderr],
      [EXIT.open, '', 'No payment matches these options.\n'],
    );
    const sum = await runCli(['payments', '--sum', 'day', '--job', jobId(9)], { env });
    assert.equal(sum.code, 2);
    assert.match(sum.stderr, /use --sum without --job/);
  });

  test('an asset that is not known is named by its contract, with its units', async () => {
    const asset = '0x6666666666666666666666666666666666666666';
    const reserved = paymentReserved({ jobId: jobId(1), asset });
    const env = await dataWith('other-asset', [reserved, paymentSettled({ jobId: jobId(1) })]);
    const { stdout } = await runCli(['payments'], { env });
    assert.ok(stdout.includes(`  3000 units of ${asset}  `), stdout);
  });

  test('--sum: by day or month, as a table, CSV or JSON', async () => {
    const env = await dataWith('sums', UNSERVED, LOST);
    const { network, asset } = row(1, 'unserved');
    const sum = {
      period: '2026-01',
      network,
      asset,
      charged: '3000',
      served: '0',
      refunded: '0',
      open: '3000',
    };
    const json = await runCli(['payments', '--sum', 'month', '--json'], { env });
    assert.deepEqual([json.code, JSON.parse(json.stdout)], [EXIT.open, [sum]]);
    const csv = await runCli(['payments', '--sum', 'day', '--csv'], { env });
    const day = Object.values({ ...sum, period: '2026-01-02' }).join(',');
    assert.equal(csv.stdout, `${Object.keys(sum).join(',')}\n${day}\n`);
    const none = await runCli(['payments', '--sum', 'day', '--since', '2026-01-03', '--json'], { env });
    assert.deepEqual(JSON.parse(none.stdout), []);
  });

  test('exit codes of every list: 3 while anything is left to do, 0 else; 1 if the sums contradict each other', async () => {
    const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
    const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction: null };
    const served = (paid: typeof payment): readonly DomainEvent[] => [
      jobStarted({ jobId: jobId(1), mode: 'x402', payment: paid, paymentStream: id(1) }),
      jobCompleted({ jobId: jobId(1) }),
    ];
    const lists = [['--unknown'], ['--all'], ['--sum', 'day'], ['--balance']];
    for (const [name, jobs, code] of [
      ['all-served', served(payment), 0],
      ['one-due', [], EXIT.open],
    ] as const) {
      const env = await dataWith(name, UNSERVED);
      if (jobs.length > 0) await add(env, `job-${jobId(1)}`, jobs);
      for (const args of lists)
        assert.equal((await runCli(['payments', ...args], { env })).code, code, `${name} ${args}`);
    }
    const env = await dataWith('contradiction', UNSERVED);
    await add(env, `job-${jobId(1)}`, served({ ...payment, amount: '1' }));
    const { code, stderr } = await runCli(['payments', '--balance'], { env });
    assert.equal(code, EXIT.foundWrong);
    assert.match(
      stderr,
      /^relay: the sums of 0x\S+ on eip155:8453 contradict each other: run relay audit\n$/,
    );
  });

  test('a service that runs on the log continues, and does not block the command', async () => {
    const env = await dataWith('served', UNSERVED, LOST);
    // Its read models are unavailable: they take time to open, and the commands read the log only.
    const service = await startService({ ...env, DATABASE_URL: 'postgres://user@127.0.0.1:1/none' });
    try {
      const listed = await runCli(['payments', '--json'], { env });
      assert.deepEqual(JSON.parse(listed.stdout), [row(1, 'unserved'), row(2, 'unknown')]);
      const resolved = await runCli(['payments', 'resolve', id(2), ...BY_HAND, '--not-settled'], {
        env: { ...env, ...NOWHERE },
      });
      assert.equal(resolved.code, 0, resolved.stderr);
      assert.equal((await fetch(`${service.url}/health`)).status, 200);
    } finally {
      const { code } = await service.stop();
      assert.equal(code, 0);
    }
    assert.equal((await stored(env, id(2))).at(-1)?.type, 'PaymentRejected');
  });
});

describe('relay payments resolve, without a node that answers', () => {
  const resolve = (env: Record<string, string>, ...args: readonly string[]) =>
    runCli(['payments', 'resolve', ...args], { env: { ...env, ...NOWHERE } });

  test('nothing is recorded: exit 2; by hand it is, with the reason, and printed with the next step', async () => {
    const env = await dataWith('settled', LOST);
    const failed = await resolve(env, id(1));
    assert.deepEqual([failed.code, failed.stdout], [2, '']);
    assert.match(failed.stderr, /gives no usable answer: try again, or use another node, or --by-hand/);
    assert.equal((await stored(env, id(1))).length, LOST.length);

    const args = [id(1), ...BY_HAND, '--settled', TRANSACTION];
    const { code, stdout } = await resolve(env, ...args);
    assert.equal(code, 0);
    assert.match(
      stdout,
      new RegExp(
        `^${id(1)} is recorded as settled, as your statement \\(job job_0+2\\)\\.\n.*without a new charge`,
      ),
    );
    const { data } = (await stored(env, id(1))).at(-1) ?? {};
    assert.deepEqual(
      [data?.transaction, data?.evidence, data?.statement],
      [TRANSACTION.toLowerCase(), 'operator', REASON],
    );
    const listed = await runCli(['payments', '--json'], { env });
    assert.deepEqual(JSON.parse(listed.stdout)[0].state, 'unserved');
    const again = await resolve(env, ...args);
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, new RegExp(`nothing to resolve: ${id(1)} is settled\n$`));
  });

  test('--not-settled, --json', async () => {
    const env = await dataWith('never', LOST);
    const { code, stdout } = await resolve(env, id(1), ...BY_HAND, '--not-settled', '--json');
    assert.equal(code, 0);
    const { next, ...rest } = JSON.parse(stdout);
    const expected = {
      id: id(1),
      kind: 'not_settled',
      jobId: jobId(2),
      transaction: null,
      evidence: 'operator',
    };
    assert.deepEqual(rest, expected);
    assert.match(next, /key is free/);
  });

  test('--not-settled: too early while the authorization can be used, and nothing is recorded', async () => {
    const env = await dataWith('early', USABLE);
    const { code, stdout, stderr } = await resolve(env, id(1), ...BY_HAND, '--not-settled');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /relay: too early: .* until \d{4}-\d\d-\d\dT[^\n]+\n$/);
    assert.equal((await stored(env, id(1))).length, USABLE.length);
  });

  test('a payment that is not in the log: exit 1; without X402_RPC_URL: exit 2', async () => {
    const env = await dataWith('unheard', LOST);
    const { code, stderr } = await resolve(env, id(9));
    assert.deepEqual([code, stderr], [1, `relay: nothing to resolve: ${id(9)} is not in the log\n`]);
    const unset = await runCli(['payments', 'resolve', id(1)], { env });
    assert.equal(unset.code, 2);
    assert.match(unset.stderr, /^relay: X402_RPC_URL is not set/);
  });
});

describe('what cannot run: exit 2', () => {
  const byHand = ['--by-hand', '--reason', 'r'];
  const unrunnable: readonly (readonly string[])[] = [
    ['resolve'],
    ['resolve', id(1), '--not-settled'],
    ['resolve', id(1), '--settled', TRANSACTION],
    ['resolve', id(1), '--reason', 'r'],
    ['resolve', id(1), '--by-hand', '--not-settled'],
    ['resolve', id(1), ...byHand],
    ['resolve', id(1), ...byHand, '--settled', TRANSACTION, '--not-settled'],
    ['resolve', id(1), ...byHand, '--settled'],
    ['resolve', id(1), ...byHand, '--settled', '0x1234'],
    ['resolve', id(1), ...byHand, '--settled', `0x${hex('g')}`],
    ['resolve', id(1), '--by-hand', '--reason', ' ', '--not-settled'],
    ['resolve', id(1), '--by-hand', '--reason', 'a\u0000b', '--not-settled'],
    ['resolve', id(1), '--by-hand', '--reason', 'x'.repeat(501), '--not-settled'],
    ['resolve', 'payment-1'],
    ['resolve', jobId(1)],
    ['resolve', id(1), id(2)],
    ['refund'],
    ['refund', 'begin'],
    ['refund', 'begin', 'payment-1'],
    ['refund', 'begin', id(1), '--csv', '--json'],
    ['refund', 'cancel'],
    ['refund', 'complete'],
    ['refund', 'complete', '--tx', '0x1'],
    ['refund', 'complete', '--tx', TRANSACTION, id(1)],
    ['--csv', '--json'],
    ['--all', '--unknown'],
    ['--sum', 'week'],
    ['--sum', 'day', '--unknown'],
    ['--since', 'yesterday'],
    ['--since', '2026-02-30'],
    ['--since', '2026-01-02', '--until', '2026-01-02'],
  ];
  for (const args of unrunnable) {
    test(
      args
        .join(' ')
        .replace(/(\w)\1{20,}/g, '$1…')
        .replaceAll('\u0000', '␀'),
      async () => {
        const program = new Command().exitOverride().configureOutput({ outputError: () => undefined });
        addPayments(program);
        const run = program.parseAsync(['payments', ...args], { from: 'user' });
        await assert.rejects(run, (error) => exitOf(error) === EXIT.couldNotRun);
      },
    );
  }
});
