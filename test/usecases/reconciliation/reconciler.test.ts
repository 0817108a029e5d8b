// The comparison as it runs beside the service: its rhythm, several processes, a node that fails, its end, its figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModelsUnavailable } from '#projections/read-models.ts';
import { ledgerReader } from '#src/usecases/payments/read-ledger.ts';
import { chainReconciler, type ReconcilerDeps } from '#src/usecases/reconciliation/reconciler.ts';
import { ACCOUNT, transactionOf } from '#test/support/chain/fakes-chain.ts';
import { quiet } from '#test/support/world/fakes.ts';
import { type ReconciledWorld, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const STRANGER = '0x4444444444444444444444444444444444444444';
const INTERVAL = 60_000;

function started(it: ReconciledWorld, changes: Partial<ReconcilerDeps> = {}) {
  const { deps, logger, log } = it.openProcess();
  const ending = new AbortController();
  const all = { ...deps, payee: ACCOUNT.payee, intervalMs: INTERVAL, stopping: ending.signal, ...changes };
  const reconciler = chainReconciler(all);
  const ended = reconciler.run();
  return {
    reconciler,
    lines: logger.lines,
    log,
    stop: () => {
      ending.abort();
      return ended;
    },
  };
}
const rounds = (it: ReconciledWorld, stream?: string) =>
  it.log.events.filter(
    (event) => event.type === 'ChainReconciled' && (stream ?? event.stream) === event.stream,
  );

async function minutes(it: ReconciledWorld, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await quiet();
    it.pass(60);
    for (let j = 0; j < 10; j++) await quiet();
  }
}

test('a round at the start, and one after each interval; none without a new block', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 3);
  assert.equal(rounds(it).length, 4);
  it.chain.node.safeLag = 1_000_000;
  await minutes(it, 3);
  assert.equal(rounds(it).length, 4);
  await one.stop();
});

test('two processes: one round an interval, by one of them', async () => {
  const it = reconciledWorld();
  const both = [started(it), started(it)];
  await minutes(it, 5);
  const count = rounds(it).length;
  assert.ok(count >= 5 && count <= 7, `${count} rounds`);
  await both[0]?.stop();
  await minutes(it, 3);
  assert.ok(rounds(it).length >= count + 2, 'the other one continues');
  await both[1]?.stop();
});

test('a node that is down is logged once, and once when it is back; then everything is compared', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 1);
  const payment = await it.payment('1', 'unknown');
  it.chain.pay(payment.reserved);
  it.chain.node.isDown = true;
  await minutes(it, 5);
  it.chain.node.isDown = false;
  await minutes(it, 2);
  const messages = one.lines.map(({ message }) => message);
  assert.deepEqual(messages, [
    'The node of X402_RPC_URL does not answer: settlements whose answer was lost stay open, the books are not compared. A service that started without it answers paid calls 503.',
    'payments of unknown fate are on the chain: they are charged',
    'the node of the chain answers, and the books are compared with the chain again',
  ]);
  assert.deepEqual(one.lines[0]?.fields, { condition: 'no_answer', why: 'unreachable' });
  assert.deepEqual(await it.states(), { 1: 'unserved' });
  await one.stop();
});

test('what it finds is logged: missing charges, strangers’ transfers, a reorganisation', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 1);
  const payment = await it.payment('1', 'served');
  it.chain.transfer(STRANGER, 5n);
  await minutes(it, 2);
  const [missing, unattributed] = one.lines;
  assert.deepEqual([missing?.level, unattributed?.level], ['error', 'warn']);
  assert.match(missing?.message ?? '', /^charges are not on the chain; see/);
  assert.match(unattributed?.message ?? '', /^transfers to the payee pay for nothing/);
  const { data } = rounds(it).find((event) => event.data.missing === 1) ?? assert.fail();
  assert.deepEqual(missing?.fields, { payments: [payment.stream], toBlock: data.toBlock });
  it.chain.reorganise(it.chain.last().number - 5);
  await minutes(it, 1);
  assert.equal(one.lines[2]?.message, 'the chain was reorganised; its blocks are compared again');
  await one.stop();
});

test('a transfer that the node left out is read again at once, and once a look', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 1);
  const payment = await it.payment('1', 'served');
  it.chain.pay(payment.reserved);
  it.chain.mine();
  const finding = await it.chain.lookUp(payment.reserved);
  assert.ok(finding.outcome === 'paid');
  it.chain.node.omits.add(finding.transaction);
  const before = rounds(it).length;
  await minutes(it, 3);
  assert.ok(rounds(it).length <= before + 6);
  assert.deepEqual(await it.states(), {});
  it.chain.node.omits.clear();
  await minutes(it, 2);
  const { received, charged, balanced } = await it.balance();
  assert.deepEqual([received, charged, balanced], ['3000', '3000', true]);
  await one.stop();
});

test('an earlier payee is compared as long as something of its payments is open', async () => {
  const it = reconciledWorld();
  const payment = await it.payment('1', 'unknown');
  it.chain.pay(payment.reserved);
  const one = started(it, { payee: STRANGER });
  await minutes(it, 2);
  assert.deepEqual(await it.states(), { 1: 'unserved' });
  assert.ok(rounds(it, `chain-${ACCOUNT.network}:${ACCOUNT.payee}`).length > 0);
  assert.ok(rounds(it, `chain-${ACCOUNT.network}:${STRANGER}`).length > 0);
  await one.stop();
});

test('it ends while it waits for the interval, for the node, and before it reads a long log', async () => {
  const it = reconciledWorld();
  const waiting = started(it);
  await minutes(it, 1);
  await waiting.stop();

  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const scan: ReconcilerDeps['scan'] = {
    ...it.chain.scan,
    safeBlock: (signal) => {
      asked();
      return new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
      );
    },
  };
  const hanging = started(it, { scan });
  await isAsked;
  await hanging.stop();
  assert.deepEqual(hanging.lines, []);
});

test('an event log that is down is waited for, and no defect', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 1);
  one.log.setAway(true);
  await minutes(it, 2);
  one.log.setAway(false);
  const count = rounds(it).length;
  await minutes(it, 2);
  assert.ok(rounds(it).length > count);
  assert.deepEqual(one.lines, []);
  await one.stop();
});

const sinceOf = ({ reconciler }: ReturnType<typeof started>) => reconciler.standsStillSince();
/** STANDSTILL_MS and two intervals, in minutes. */
const LIMIT = 17;

/** Returns what ends it. */
type Begin = (it: ReconciledWorld) => () => void;
const STANDSTILLS: readonly (readonly [name: string, begin: Begin, level: string, message: RegExp])[] = [
  [
    'the node answers, and has no further block that counts',
    ({ chain: { node } }) => {
      node.safeLag = 1_000_000;
      return () => {
        node.safeLag = 0;
      };
    },
    'warn',
    /No block of the chain was compared with the books since/,
  ],
  [
    'the node does not answer',
    ({ chain: { node } }) => {
      node.isDown = true;
      return () => {
        node.isDown = false;
      };
    },
    'warn',
    /The node of X402_RPC_URL does not answer: .* the books are not compared/,
  ],
  [
    'a round fails by a defect',
    ({ chain: { scan: port } }) => {
      const { scan } = port;
      port.scan = () => Promise.reject(new TypeError('a defect'));
      return () => {
        port.scan = scan;
      };
    },
    'bug',
    /the comparison of the books with the chain failed/,
  ],
];
for (const [name, begin, level, message] of STANDSTILLS)
  test(`it stands still: ${name}`, async () => {
    const it = reconciledWorld();
    const one = started(it);
    await minutes(it, 3);
    assert.equal(sinceOf(one), null);
    const since = new Date(it.clock.now()).toISOString();
    const end = begin(it);
    await minutes(it, LIMIT);
    assert.equal(sinceOf(one), null, 'not yet');
    await minutes(it, 2);
    assert.equal(sinceOf(one), since);
    const [line] = one.lines;
    assert.equal(line?.level, level);
    assert.match(line?.message ?? '', message);
    end();
    await minutes(it, 2);
    assert.equal(sinceOf(one), null);
    await one.stop();
  });

test('it stands still from the start, since the last block that was compared; and until it has compared one', async () => {
  const it = reconciledWorld();
  const before = started(it);
  await minutes(it, 2);
  await before.stop();
  const { blockTime } = (await it.compared()) ?? assert.fail();
  it.chain.node.isDown = true;
  it.pass(86_400);
  const later = started(it);
  await minutes(it, 1);
  assert.equal(sinceOf(later), blockTime);
  it.chain.node.isDown = false;
  await minutes(it, 2);
  assert.equal(sinceOf(later), null);
  await later.stop();

  const fresh = reconciledWorld();
  fresh.chain.node.isDown = true;
  const since = new Date(fresh.clock.now()).toISOString();
  const first = started(fresh);
  await minutes(fresh, LIMIT);
  assert.equal(sinceOf(first), null);
  await minutes(fresh, 1);
  assert.equal(sinceOf(first), since);
  await first.stop();
});

test('the blocks that another process compares count', async () => {
  const it = reconciledWorld();
  const hanging = started(it, { scan: { ...it.chain.scan, safeBlock: () => new Promise(() => {}) } });
  const other = started(it);
  await minutes(it, LIMIT);
  // It looks at the event log once a round only.
  const waiting = started(it, { intervalMs: 3 * INTERVAL });
  await minutes(it, LIMIT + 4);
  assert.equal(sinceOf(waiting), null);
  assert.notEqual(sinceOf(hanging), null, 'its own look does not end');
  await other.stop();
});

test('its figures: sums, what is open and for how long, the last block', async () => {
  const it = reconciledWorld();
  const one = started(it);
  assert.equal(one.reconciler.figures(), null);
  await minutes(it, 1);
  const served = await it.payment('1', 'served');
  const open = await it.payment('2', 'settled');
  it.chain.pay(served.reserved);
  it.chain.pay(open.reserved);
  it.chain.transfer(STRANGER, 5n);
  await it.payment('3', 'unknown');
  await minutes(it, 1);
  const figures = one.reconciler.figures();
  assert.deepEqual(figures?.units, {
    charged: 6000,
    served: 3000,
    refunded: 0,
    open: 3000,
    missing: 0,
    corrected: 0,
    received: 6005,
    unattributed: 5,
  });
  assert.equal(figures?.balanced, true);
  const { unserved, unknown, missing } = figures?.open ?? assert.fail();
  assert.deepEqual([unserved.payments, unknown.payments, missing.payments], [1, 1, 0]);
  assert.ok(unserved.oldestSeconds > 59 && unserved.oldestSeconds <= 60, String(unserved.oldestSeconds));
  it.clock.advance(5000);
  const later = one.reconciler.figures()?.open.unserved.oldestSeconds ?? 0;
  assert.equal(Math.round(later - unserved.oldestSeconds), 5);
  assert.deepEqual(figures?.reconciled, { block: it.chain.last().number, timeSeconds: it.chain.last().time });
  await one.stop();
});

test('without the rows of the ledger: transfers are found, figures are unknown, and all the rest is found once they are back', async () => {
  const it = reconciledWorld();
  const paid = await it.payment('1', 'unknown');
  it.chain.pay(paid.reserved);
  await it.payment('2', 'served');
  const read = ledgerReader(it.log);
  let isDown = false;
  const one = started(it, {
    ledger: async () => (isDown ? Promise.reject(readModelsUnavailable()) : read()),
  });
  await minutes(it, 1);
  assert.notEqual(one.reconciler.figures(), null);
  isDown = true;
  const late = await it.payment('3', 'unknown');
  it.chain.pay(late.reserved);
  await it.payment('4', 'served');
  await minutes(it, 4);
  assert.equal(one.reconciler.figures(), null);
  assert.deepEqual(await it.types(late), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
  assert.deepEqual(await it.states(), { 1: 'unserved', 2: 'missing', 3: 'unserved' });
  isDown = false;
  await minutes(it, 2);
  assert.deepEqual(await it.states(), { 1: 'unserved', 2: 'missing', 3: 'unserved', 4: 'missing' });
  assert.equal(one.reconciler.figures()?.balanced, true);
  await one.stop();
});

test('more is open than the rows name: the sums are those of all, the older ones are judged, then the others', async () => {
  const it = reconciledWorld();
  for (let i = 1; i <= 8; i++) await it.payment(String(i), 'unknown');
  for (let i = 10; i <= 14; i++) it.chain.pay((await it.payment(String(i), 'settled')).reserved);
  const whole = ledgerReader(it.log);
  const few = <T>(rows: ReadonlyMap<string, T>) => new Map([...rows].slice(0, 4));
  const one = started(it, {
    async ledger() {
      const { entries, unconfirmed, ...all } = await whole();
      return { ...all, entries: few(entries), unconfirmed: few(unconfirmed) };
    },
  });
  await minutes(it, 1);
  assert.equal(one.reconciler.figures()?.units.open, 15_000);
  assert.equal(one.reconciler.figures()?.open.unknown.payments, 4);
  await minutes(it, 6);
  assert.deepEqual(await it.states(), {
    10: 'unserved',
    11: 'unserved',
    12: 'unserved',
    13: 'unserved',
    14: 'unserved',
  });
  await it.serve('14');
  await minutes(it, 1);
  const { served, open } = one.reconciler.figures()?.units ?? assert.fail();
  assert.deepEqual([served, open], [3000, 12_000]);
  assert.equal(one.reconciler.figures()?.balanced, true);
  await one.stop();
});

test('a balance that does not agree with the transfers: named with its sum, logged when it begins and when it is over', async () => {
  const it = reconciledWorld();
  const one = started(it);
  await minutes(it, 1);
  assert.equal(one.reconciler.difference(), null);
  const { reserved } = await it.payment('1', 'served');
  it.chain.pay(reserved);
  it.chain.node.omits.add(transactionOf(reserved));
  await minutes(it, 3);
  assert.equal(one.reconciler.difference()?.units, 3000n);
  assert.equal(one.reconciler.figures()?.differenceUnits, 3000);
  it.chain.node.omits.clear();
  await minutes(it, 2);
  assert.equal(one.reconciler.difference(), null);
  assert.equal(one.reconciler.figures()?.differenceUnits, 0);
  const logged = one.lines.filter(({ fields }) => /books_differ_from_chain/.test(JSON.stringify(fields)));
  assert.deepEqual(
    logged.map(({ level }) => level),
    ['error', 'info'],
  );
  assert.match(logged[0]?.message ?? '', /balance of X402_PAY_TO .* differ by 3000 units/);
  await one.stop();
});
