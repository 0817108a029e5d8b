// Random kills of the relay and random faults of the facilitator, while stock clients buy calls and sign on every
// repeat. At the end each charge is served, refunded or open, in the log as on the chain; no call was made twice, and none
// without a charge.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EXIT } from '#src/cli/exit.ts';
import { sleep } from '#src/lib/time.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import type { Payer } from '#test/support/chain/payer.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { IS_ALONE, PROCESSES } from '#test/support/process/cells.ts';
import { runCli } from '#test/support/process/cli.ts';
import type { Fault } from '#test/support/process/fault-proxy.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import type { Sent } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';
import { Random } from '#test/support/world/random.ts';
import { stockClient } from './stock-client.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
/** Two processes wait for leases: in the full set only. */
const COUNTS: readonly (1 | 2)[] = IS_ALONE ? (LONG ? [1, 2] : [1]) : [PROCESSES];
const CUSTOMERS = LONG ? 24 : 6;
/** Fewer than a payer's paid calls in flight, because an unconfirmed payment counts as one. */
const CALLS_EACH = 3;
const KILLS = LONG ? 8 : 2;
/** So that an interrupted job's lease ends soon; long enough for a busy machine to reach the target, and to kill. */
const TIMEOUT_MS = 4000;
const LIMIT_MS = 150_000;

const times = (count: number, fault: Fault): Fault[] => Array(count).fill(fault);
/** Drawn from at random. */
const AT_VERIFY = [...times(16, 'pass'), ...times(2, 'http_500'), ...times(1, 'not_json')];
const AT_SETTLE = [
  ...times(10, 'pass'),
  ...times(4, 'cut'),
  ...times(2, 'json_500_after'),
  ...times(2, 'pending'),
  ...times(2, 'http_500'),
  ...times(1, 'refuse'),
];

/** `unconfirmed`: the authorization of its first payment is unused on the chain and has not expired. */
type Outcome = 'executed' | 'interrupted' | 'unconfirmed';
type Call = {
  readonly payer: Payer;
  readonly path: string;
  readonly client: ReturnType<typeof stockClient>;
  outcome: Outcome | null;
};
type Row = {
  readonly id: string;
  readonly state: string;
  readonly payer: Payer['address'];
  readonly amount: string;
};

type Story = { readonly paid: PaidWorld; readonly calls: readonly Call[] };

/** One run to its end, at which every call has an outcome. `count`: processes. */
async function play(paid: PaidWorld, count: 1 | 2, env: Record<string, string>): Promise<Story> {
  const seed = Number(process.env.RELAY_TEST_SEED ?? Date.now() % 1_000_000_007);
  console.log(`${count} process(es): RELAY_TEST_SEED=${seed}`);
  const dice = new Random(seed);
  const chance = (most: number) => Math.floor(dice.fraction() * most);

  const services: Service[] = [];
  // One after the other: the first makes the key file.
  for (let n = 0; n < count; n++) services.push(await paid.start(env));
  const calls: Call[] = (await paid.payers(CUSTOMERS)).flatMap((payer, customer) =>
    Array.from({ length: CALLS_EACH }, (_, n) => {
      const path = `/books/${customer}/${n}`;
      const request = {
        url: paid.target.url(path),
        idempotencyKey: path,
        timeoutMs: TIMEOUT_MS,
        body: { n },
      };
      const client = stockClient((customer + n) % 2 === 0 ? 2 : 1, { payer, request });
      return { payer, path, client, outcome: null };
    }),
  );

  // The first process is killed during the first call that reaches the target, whichever it is. Faults begin then.
  let faulty = false;
  let killed = false;
  let isFirst = true;
  const reached = Promise.withResolvers<void>();
  paid.target.answer(async () => {
    if (isFirst) {
      isFirst = false;
      reached.resolve();
      return new Promise(() => undefined);
    }
    await sleep(chance(300));
    return { status: chance(8) === 0 ? 500 : 200 };
  });
  paid.node.rule(() => (faulty && chance(8) === 0 ? 'cut' : 'pass'));
  paid.proxy.rule(async ({ kind }) => {
    if (!faulty) return 'pass';
    if (chance(5) === 0) await sleep(chance(1500));
    const faults = kind === 'verify' ? AT_VERIFY : AT_SETTLE;
    return faults[chance(faults.length)] ?? 'pass';
  });

  /** Until the first kill, all go to the process that is killed. `final`: an unconfirmed payment is the outcome. */
  async function attempt(call: Call, final: boolean): Promise<void> {
    const service = services[killed ? chance(count) : 0];
    const sent = service === undefined ? null : await answerOf(call, service);
    call.outcome = sent === null ? null : outcomeOf(sent, final);
    if (call.outcome === null) await sleep(final ? 1500 : 100 + chance(400));
  }

  async function customer(own: readonly Call[]): Promise<void> {
    for (const call of own) {
      for (let n = 0; (n < 6 || !killed) && call.outcome === null; n++) await attempt(call, false);
      await sleep(chance(300));
    }
  }

  async function killer(): Promise<void> {
    await reached.promise;
    for (let n = 0; n < KILLS; n++) {
      const at = n === 0 ? 0 : chance(count);
      await services[at]?.kill();
      killed = true;
      faulty = true;
      services[at] = await paid.start(env);
      await sleep(200 + chance(1000));
    }
  }

  const own = Array.from({ length: CUSTOMERS }, (_, n) => calls.slice(n * CALLS_EACH, (n + 1) * CALLS_EACH));
  await Promise.all([killer(), ...own.map(customer)]);
  faulty = false;
  await waitFor('the facilitator has ended', () => paid.proxy.calls.every(({ ended }) => ended));

  // Kills and faults are over: repeats give each call its outcome, after the watch of another process's settlements and the
  // lease of its jobs.
  const begun = performance.now();
  await Promise.all(
    calls.map(async (call) => {
      while (call.outcome === null) {
        assert.ok(performance.now() - begun < LIMIT_MS, `no outcome: ${call.path}`);
        await attempt(call, true);
      }
    }),
  );
  return { paid, calls };
}

/** null: the process was killed. A look-up that is late on a busy machine is refused before anything is charged. */
async function answerOf({ client }: Call, service: Service): Promise<Sent | null> {
  for (;;) {
    const sent = await client.call(service).catch(() => null);
    if (sent === null || sent.status === 200 || sent.status === 502) return sent;
    if (sent.body.error.code !== 'target_unresolvable') return sent;
    await sleep(200);
  }
}

/** null: repeat the call. */
function outcomeOf({ status, body }: Sent, final: boolean): Outcome | null {
  if (status === 200) return 'executed';
  if (status === 502) {
    const { errorCategory } = body.job;
    return errorCategory === 'interrupted_unknown' || errorCategory === 'not_executed'
      ? 'interrupted'
      : 'executed';
  }
  assert.ok([402, 409, 429, 503].includes(status), JSON.stringify(body));
  const { details } = status === 409 ? body.error : { details: null };
  const unconfirmed = (details as { paymentState?: string } | null)?.paymentState === 'unconfirmed';
  return final && unconfirmed ? 'unconfirmed' : null;
}

/** Of the stream of comparisons: each begins after the one before it, whichever process made it. */
function assertRounds(events: readonly RecordedEvent[]): void {
  const rounds = events.filter(({ type }) => type === 'ChainReconciled').map(({ data }) => data);
  assert.ok(rounds.length > 1, 'the books were compared while processes were killed');
  for (const [n, round] of rounds.slice(1).entries())
    assert.equal(round.fromBlock, Number(rounds[n]?.toBlock) + 1, JSON.stringify(rounds));
}

async function assertBooks({ paid, calls }: Story, env: Record<string, string>): Promise<void> {
  const by = (outcome: Outcome) => calls.filter((call) => call.outcome === outcome);
  const units = (count: number) => String(3000 * count);
  const payments = async (args: readonly string[], ...expected: readonly number[]) => {
    const { code, stdout, stderr } = await runCli(['payments', ...args, '--json'], { env });
    // A comparison prints its progress if it is ahead of the services.
    assert.match(stderr, /^(compared up to block \d+\n)*$/);
    assert.ok(code !== null && expected.includes(code), `${args}: exit ${code}`);
    return JSON.parse(stdout);
  };

  console.log(
    `${calls.length} calls: ${by('executed').length} executed, ${by('interrupted').length} interrupted, ${by('unconfirmed').length} unconfirmed`,
  );
  assert.ok(by('interrupted').length > 0);
  const charged = by('executed').length + by('interrupted').length;
  assert.equal(String(await paid.chain.balanceOf(paid.payTo)), units(charged), 'transfers on the chain');
  for (const call of calls) {
    const hits = paid.hits(call);
    assert.ok(hits <= (call.outcome === 'unconfirmed' ? 0 : 1), `${call.path}: ${hits} requests`);
  }
  for (const payer of new Set(calls.map((call) => call.payer))) {
    const paidFor = calls.filter((call) => call.payer === payer && call.outcome !== 'unconfirmed').length;
    const spent = 30_000n - (await paid.chain.balanceOf(payer.address));
    assert.equal(String(spent), units(paidFor), `${payer.address} was charged`);
  }

  const refundable: Row[] = await payments(['--refundable'], EXIT.open);
  assert.equal(refundable.length, by('interrupted').length);
  const refunded = refundable.slice(0, 2);
  await payments(['refund', 'begin', ...refunded.map(({ id }) => id)], EXIT.good);
  const transfers = refunded.map(({ payer: to, amount }) => ({ to, amount: BigInt(amount) }));
  const { refunds } = await payments(['refund', 'complete', '--tx', await paid.refund(transfers)], EXIT.good);
  assert.equal(refunds.length, refunded.length);
  const [row, ...others] = await payments(['--balance'], EXIT.good, EXIT.open);
  assert.deepEqual(others, []);
  assert.deepEqual(
    { charged: row.charged, served: row.served, refunded: row.refunded, open: row.open },
    {
      charged: units(charged),
      served: units(by('executed').length),
      refunded: units(refunded.length),
      open: units(refundable.length - refunded.length),
    },
  );
  const listed: Row[] = await payments([], EXIT.good, EXIT.open);
  const count = (state: string) => listed.filter((row) => row.state === state).length;
  assert.deepEqual([count('unserved'), count('refundable')], [0, refundable.length - refunded.length]);

  const left = listed.length > 0 ? EXIT.open : EXIT.good;
  const compared = await payments(['reconcile'], left);
  assert.deepEqual([compared.missing, compared.unattributed, compared.balanced], [[], [], true]);
  const [{ received, missing, unattributed, balanced }] = await payments(['--balance'], left);
  assert.deepEqual([received, missing, unattributed, balanced], [units(charged), '0', '0', true]);

  assertRounds(await paid.log.recorded());
  const audit = await runCli(['audit', '--rpc', paid.chain.url], { env });
  assert.equal(audit.code, 0, audit.stdout);
  assert.match(audit.stdout, /[1-9]\d* comparisons? and \d+ refunds? compared with eip155:8453/);
}

describe('the books after random kills and faults', () => {
  let server: PostgresServer;
  const worlds: PaidWorld[] = [];
  const stories: Promise<Story>[] = [];
  const environments: Record<string, string>[] = [];

  async function begin(count: 1 | 2, env: Record<string, string>): Promise<void> {
    const paid = await makePaidWorld({ embedded: count === 1, processes: 1 });
    worlds.push(paid);
    const comparing = { ...env, X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '0' };
    const story = play(paid, count, comparing);
    story.catch(() => undefined);
    stories[count] = story;
    environments[count] = { ...(paid.env as Record<string, string>), ...comparing };
  }

  before(async () => {
    if (anvil.skip) return;
    // All at once: two processes mostly wait for each other's leases.
    if (COUNTS.includes(1)) await begin(1, {});
    if (!COUNTS.includes(2) || postgres.skip) return;
    server = await postgresServer();
    await begin(2, { DATABASE_URL: await server.newDatabase() });
  });
  after(async () => {
    for (const world of worlds) await world.end();
    await server?.remove();
  });

  const both = { skip: anvil.skip || postgres.skip };
  for (const count of COUNTS) {
    const [title, needs] = count === 1 ? ['one process', anvil] : ['two processes over PostgreSQL', both];
    const options = { ...needs, timeout: 300_000 };
    test(`${title}: each charge is served, refunded or open; the audit finds nothing`, options, async () => {
      const [story, env] = [await stories[count], environments[count]];
      assert.ok(story && env);
      await assertBooks(story, env);
    });
  }
});
