// Paid schedules by two processes of one deployment over EventStoreDB and PostgreSQL: they look at the same due runs, one of them
// or both are killed in the middle, and no target is called twice, nothing is charged twice, and every run has its end.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { challenge, makePayment, type Payer, type Payment } from '#test/support/chain/payer.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type Cluster, type Member, makeCluster } from '#test/support/process/cluster.ts';
import { waitFor } from '#test/support/process/service.ts';
import { assertDelivered, each, sendPatiently } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, PURSE, type Sample } from '#test/support/world/paid-world.ts';
import { assertVerifiesOffline, sendsRecorded } from '#test/support/world/service-receipts.ts';
import { type Answered, type ErrorBody, get, post } from '#test/support/world/service-world.ts';

const ROUTE = '/api/schedules/webhook';
const RUNS = 10;
const COPIES = 100;
const PRICE = 3000n;
/** A purchase that is to be repeated with the same payment. */
const isToRepeat = ({ status, body }: Answered<ErrorBody>): boolean =>
  status === 503 ||
  (status >= 409 && ['idempotency_in_progress', 'too_many_in_flight'].includes(body.error.code));
/** How a job ends whose payment is to be returned. */
const NOTHING_BOUGHT = ['interrupted_unknown', 'not_executed'];
const LIMIT = { timeout: 280_000 };
/** A run that a kill has left is observed for its lease and a grace, or for 45 s where it has no job and again in settle. */
const CLOSED = { limitMs: 240_000, everyMs: 500 };

type Bought = { readonly scheduleId: string; readonly cancelToken: string | null };
type Run = {
  readonly state: string;
  readonly reason: string | null;
  readonly links: { readonly receipt: string | null } | null;
};
type Order = Sample & {
  readonly scheduleId: string;
  /** Unix ms. */
  readonly dueMs: number;
};

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };

describe('paid schedules by two processes over EventStoreDB', needs, () => {
  let paid: PaidWorld;
  let cluster: Cluster;
  let members: readonly Member[] = [];
  const orders: Order[] = [];
  /** Immediate calls, whose jobs name the processes. */
  const calls: Sample[] = [];
  /** No target under `/held` answers until this is resolved. */
  let held = Promise.withResolvers<void>();
  /** Resolves when the runs of the first kill are over. */
  let closing: Promise<unknown> = Promise.resolve();
  /** Jobs that ran in the killed process. */
  let orphans: readonly string[] = [];

  const start = () => cluster.start({ SCHEDULES: 'on' });
  const memberOf = (n: number) => members[n % members.length] ?? assert.fail('no process is alive');
  const hits = (some: readonly Sample[]) => some.reduce((sum, one) => sum + paid.hits(one), 0);

  const body = (path: string, dueMs: number, catchUpSeconds: number) => ({
    webhook: { url: paid.target.url(path), body: { path }, timeoutMs: 12_000 },
    schedule: { type: 'once', runAt: new Date(dueMs).toISOString() },
    catchUpSeconds,
  });
  const present = (at: Member, order: unknown, { headers }: Payment): Promise<Answered<Bought & ErrorBody>> =>
    post(`${at.url}${ROUTE}`, order, headers[2]);

  type Ordering = { readonly count: number; readonly inMs: number; readonly catchUpSeconds?: number };
  /** Schedules that are due at one moment, each of a payer of its own; later, if that passes before an order arrives. */
  async function buy(row: string, { count, inMs, catchUpSeconds = 300 }: Ordering): Promise<Order[]> {
    const atMs = Date.now() + inMs;
    const payers = await paid.payers(count);
    const bought = await each(payers, (payer, n) => buyOne(payer, `/${row}/${n}`, n, atMs));
    orders.push(...bought);
    return bought;

    async function buyOne(payer: Payer, path: string, n: number, dueMs: number): Promise<Order> {
      const at = memberOf(n);
      const request = body(path, dueMs, catchUpSeconds);
      const payment = await makePayment(payer, await challenge(`${at.url}${ROUTE}`, request));
      const answer = await waitFor('room for the purchase', async () => {
        const one = await present(at, request, payment);
        return !isToRepeat(one) && one;
      });
      if (answer.status === 400) return buyOne(payer, path, n, Date.now() + inMs);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      const { scheduleId } = answer.body;
      return { n, payer, payment, request, path, scheduleId, dueMs };
    }
  }

  /** Its run when it is over: executed with a receipt, or skipped. */
  async function overAt(at: Member, { scheduleId }: Order): Promise<Run | false> {
    const answer = await get<{ runs: readonly Run[] }>(`${at.url}/api/schedules/${scheduleId}`).catch(
      () => null,
    );
    const run = answer?.status === 200 ? answer.body.runs[0] : undefined;
    const isOver =
      run?.state === 'skipped' || (run?.state === 'executed' && typeof run.links?.receipt === 'string');
    return run !== undefined && isOver && run;
  }

  /** Waits for both processes to say how each run has ended. */
  async function allOver(some: readonly Order[]): Promise<Map<Order, Run>> {
    const runs = new Map<Order, Run>();
    for (const order of some)
      for (const n of [0, 1])
        runs.set(order, await waitFor(`${order.path} is over`, () => overAt(memberOf(n), order), CLOSED));
    return runs;
  }

  const jobsOf = (events: readonly RecordedEvent[], some: readonly Order[]) => {
    const ids = new Set(some.map(({ scheduleId }) => scheduleId));
    return events.flatMap(({ type, data }) =>
      type === 'RunFunded' && ids.has(String(data.scheduleId)) ? [String(data.jobId)] : [],
    );
  };

  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld({ processes: 1 });
    cluster = await makeCluster('eventstoredb+postgres', { world: paid });
    paid.target.answer(async ({ path }) => {
      if (path.startsWith('/held')) await held.promise;
      return { status: 200 };
    });
    members = await Promise.all([start(), start()]);
  });
  after(async () => {
    held.resolve();
    if (cluster === undefined) await paid?.end();
    else await cluster.end();
  });

  test('the process that runs most of them is killed: the other ends what it has left', LIMIT, async () => {
    const named = await paid.samples(memberOf(0), 'names', { count: 2 });
    calls.push(...named);
    const jobs = await each(named, async (sample, n) => {
      const { job } = assertDelivered(await sendPatiently(memberOf(n), sample), sample);
      return job.id;
    });
    const some = await buy('held-one', { count: RUNS, inMs: 8000 });
    await waitFor('runs are at their targets', () => hits(some) >= RUNS / 2);
    const begun = await cluster.recorded();
    const started = begun.filter(({ type }) => type === 'JobStarted').map(({ data }) => data);
    const mine = new Set(jobsOf(begun, some));
    const running = jobs.map((job) => {
      const owner = started.find(({ jobId }) => jobId === job)?.owner;
      assert.equal(typeof owner, 'string');
      return started.filter((one) => one.owner === owner && mine.has(String(one.jobId)));
    });
    const counts = running.map(({ length }) => length);
    const most = counts.indexOf(Math.max(...counts));
    const victim = memberOf(most);
    const survivor = memberOf(1 - most);
    members = [survivor];
    await victim.kill();
    held.resolve();
    const owner = running[most]?.[0]?.owner;
    const left = await cluster.recorded();
    const completed = new Set(
      left.filter(({ type }) => type === 'JobCompleted').map(({ data }) => data.jobId),
    );
    orphans = left.flatMap(({ type, data: { jobId, owner: by } }) =>
      type === 'JobStarted' && by === owner && !completed.has(jobId) ? [String(jobId)] : [],
    );
    assert.ok(orphans.length > 0);
    members = [survivor, await start()];
    closing = allOver(some);
    closing.catch(() => undefined);
  });

  test('a hundred copies of one purchase over both: one schedule, one ticket', LIMIT, async () => {
    const [payer = assert.fail()] = await paid.payers(1);
    const path = '/copies/0';
    const dueMs = Date.now() + 30_000;
    const request = body(path, dueMs, 300);
    const payment = await makePayment(payer, await challenge(`${memberOf(0).url}${ROUTE}`, request));
    const copies = Array.from({ length: COPIES }, (_, n) => present(memberOf(n), request, payment));
    const answers = await Promise.all(copies);
    for (const n of [0, 1]) {
      const repeat = async () => {
        const one = await present(memberOf(n), request, payment);
        return !isToRepeat(one) && one;
      };
      answers.push(await waitFor('a repeat', repeat));
    }
    const other = answers.find((one) => one.status !== 201 && !isToRepeat(one));
    assert.equal(other, undefined, JSON.stringify(other));
    const bought = answers.filter(({ status }) => status === 201).map((answer) => answer.body);
    assert.ok(bought.length >= 2);
    const [scheduleId = assert.fail(), ...others] = new Set(bought.map((one) => one.scheduleId));
    assert.deepEqual(others, []);
    const recorded = await cluster.recorded();
    const funded = recorded.filter(
      ({ type, data }) => type === 'RunFunded' && data.scheduleId === scheduleId,
    );
    assert.equal(funded.length, 1);
    orders.push({ n: 0, payer, payment, request, path, scheduleId, dueMs });
  });

  test('ten runs due at one moment: each is called once and charged once', LIMIT, async () => {
    const some = await buy('together', { count: RUNS, inMs: 8000 });
    for (const [{ path }, { state }] of await allOver(some)) assert.equal(state, 'executed', path);
    for (const order of some)
      assert.deepEqual(
        [paid.hits(order), await paid.chain.balanceOf(order.payer.address)],
        [1, PURSE - PRICE],
        order.path,
      );
  });

  test('what the killed process has left is closed by the others, and not sent again', LIMIT, async () => {
    await closing;
    const recorded = await cluster.recorded();
    for (const orphan of orphans) {
      const ends = recorded.filter(({ type, data }) => type === 'JobCompleted' && data.jobId === orphan);
      assert.deepEqual(
        ends.map(({ data }) => [data.errorCategory, data.closedBy]),
        [['interrupted_unknown', 'recovery']],
        orphan,
      );
    }
  });

  test('both are killed, just after runs were due, and start again within the catch-up', LIMIT, async () => {
    held = Promise.withResolvers();
    const some = await buy('held-both', { count: RUNS, inMs: 8000 });
    const punctual = await buy('punctual', { count: 4, inMs: 12_000, catchUpSeconds: 0 });
    await waitFor('runs are at their targets', () => hits(some) >= RUNS / 3);
    await Promise.all(members.map((member) => member.kill()));
    const downMs = Date.now();
    held.resolve();
    const lastMs = Math.max(...punctual.map(({ dueMs }) => dueMs));
    await waitFor('the punctual ones are past', () => Date.now() > lastMs + 3000);
    members = await Promise.all([start(), start()]);
    const missed = punctual.filter(({ dueMs }) => dueMs > downMs);
    const ended = await allOver([...some, ...punctual]);
    for (const order of missed) {
      const { state, reason } = ended.get(order) ?? assert.fail();
      assert.deepEqual([state, reason], ['skipped', 'missed'], order.path);
    }
  });

  test(
    'in the end: nothing was sent or charged twice, every run has its end, and the audit is clean',
    LIMIT,
    async () => {
      const ended = await allOver(orders);
      const { body: jwks } = await get(`${memberOf(0).url}/.well-known/jwks.json`);
      for (const member of members) {
        const { code, stderr } = await member.stop();
        assert.deepEqual([code, stderr], [0, '']);
      }
      const recorded = await cluster.recorded();
      const ofType = (type: string) => recorded.filter((one) => one.type === type);
      assert.equal(ofType('ScheduleDefined').length, orders.length);
      for (const type of ['RunFunded', 'RunStarted', 'JobStarted', 'JobCompleted', 'ReceiptSigned']) {
        const jobs = ofType(type).map(({ data }) => data.jobId);
        assert.equal(new Set(jobs).size, jobs.length, `${type} of a job twice`);
      }
      const namesOf = (type: string) =>
        ofType(type)
          .map(({ data }) => String(data.jobId))
          .sort();
      assert.deepEqual(namesOf('JobCompleted'), namesOf('JobStarted'));
      assert.deepEqual(namesOf('ReceiptSigned'), namesOf('JobStarted'));
      for (const { data } of ofType('ReceiptSigned')) await assertVerifiesOffline(String(data.jws), jwks);

      let [charged, served] = [calls.length, calls.length];
      const books = new Map(calls.map((sample) => [sample, { calls: 1, charges: 1 }]));
      for (const [order, { state, reason }] of ended) {
        const [job = assert.fail()] = jobsOf(recorded, [order]);
        const dataOf = (type: string) => ofType(type).find(({ data }) => data.jobId === job)?.data;
        const jws = dataOf('ReceiptSigned')?.jws;
        const isCharged = state === 'executed' || reason === 'unserved';
        const { least, most } = jws === undefined ? { least: 0, most: 0 } : sendsRecorded(String(jws));
        const sent = paid.hits(order);
        assert.ok(least <= sent && sent <= Math.min(1, most), `${order.path}: ${sent}, ${least} to ${most}`);
        books.set(order, { calls: sent, charges: isCharged ? 1 : 0 });
        const boughtNothing = NOTHING_BOUGHT.includes(String(dataOf('JobCompleted')?.errorCategory));
        charged += isCharged ? 1 : 0;
        served += state === 'executed' && !boughtNothing ? 1 : 0;
      }
      await paid.assertBooks([...books.keys()], (sample) => books.get(sample) ?? assert.fail());

      const env = { ...cluster.env, X402_CONFIRMATIONS: '0' };
      const { stdout } = await runCli(['payments', '--balance', '--json'], { env });
      const [sums] = JSON.parse(stdout);
      const amount = (count: number) => String(PRICE * BigInt(count));
      assert.deepEqual(
        [sums.balanced, sums.charged, sums.served, sums.refunded, sums.open],
        [true, amount(charged), amount(served), '0', amount(charged - served)],
        stdout,
      );
      for (const args of [['audit'], ['audit', '--rpc', paid.chain.url]]) {
        const audit = await runCli(args, { env });
        assert.equal(audit.code, 0, audit.stdout + audit.stderr);
      }
    },
  );
});
