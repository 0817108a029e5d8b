// A world in which the service is paid for real: a local chain, the stock facilitator behind a proxy that fails as
// scripted, payers with coins, and the books: who paid what, and what the target saw of it.
import assert from 'node:assert/strict';
import type { Hex } from 'viem';
import { startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { type NodeFront, startNodeFront } from '#test/support/chain/node-front.ts';
import { challenge, makePayment, newPayer, type Payer, type Payment } from '#test/support/chain/payer.ts';
import { type BatchTransfer, sendBatch } from '#test/support/chain/refund-batch.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { IS_ALONE, PROCESSES } from '#test/support/process/cells.ts';
import { type Fault, type FaultProxy, startFaultProxy } from '#test/support/process/fault-proxy.ts';
import type { Environment, Service } from '#test/support/process/service.ts';
import { assertSaid, EXECUTE, each, type PaidPath, type Sent } from './paid-call.ts';
import { countRows, makePaidLog, type PaidLog, together } from './paid-cell.ts';
import { makeWorld, type World, type WorldOptions } from './service-world.ts';

/** Atomic units. */
const PRICE = 3000n;
/** What a payer has at first. */
export const PURSE = 30_000n;
/** Payments for each row of a table; more in the full set. */
export const SAMPLES = LONG ? 20 : 3;

export type Body = Readonly<Record<string, unknown>>;

/** One payer with one payment for one request, whose path at the target is like no other's. */
export type Sample = {
  readonly n: number;
  readonly payer: Payer;
  readonly payment: Payment;
  readonly request: Body;
  readonly path: string;
};

export type PaidWorld = World & {
  /** Of the deployment on the world's data directory. */
  readonly log: PaidLog;
  readonly chain: ControlledChain;
  /** Through which the service looks at the chain. */
  readonly node: NodeFront;
  readonly proxy: FaultProxy;
  readonly payTo: Hex;
  /** New payers with a full purse each. */
  payers(count: number): Promise<Payer[]>;
  /** Returns money to payers, in one transaction, from the payee or from another wallet that has it. Returns its hash. */
  refund(transfers: readonly BatchTransfer[], from?: Hex): Promise<Hex>;
  /** `row`: names their paths. `more`: what each request has beside url and body. */
  samples(service: Service, row: string, options?: SampleOptions): Promise<Sample[]>;
  /**
   * Presents each sample's payment once: the first settle call ends in this fault and nothing can be looked up meanwhile, so
   * that the payment stays unconfirmed. Other settle calls pass.
   */
  leaveUnknown(
    samples: readonly Sample[],
    fault: Fault,
    present: (sample: Sample, n: number) => Promise<Sent>,
  ): Promise<void>;
  /** Requests at the target for this sample. */
  hits(sample: Pick<Sample, 'path'>): number;
  /**
   * In all so far, each sample: requests at the target and what left the purse; and the payee has it all. Money that
   * moved outside of the books, as that of a row which ended in its middle, fails the row that finds it, and only that.
   */
  assertBooks(samples: readonly Sample[], booked: Booked | ((sample: Sample) => Booked)): Promise<void>;
};

type Booked = { readonly calls: number; readonly charges: number };

export type SampleOptions = {
  readonly count?: number;
  readonly more?: (n: number) => Body;
  readonly terms?: Parameters<typeof makePayment>[2];
  readonly route?: PaidPath;
};

export type PaidWorldOptions = WorldOptions & {
  /** Of each service that is started; the cell's number if absent. */
  readonly processes?: 1 | 2;
  /** How long the facilitator waits for a transaction to be mined. */
  readonly facilitatorWaitMs?: number;
};

/** Calls look at the chain once after a settle call without a conclusive answer: X402_CONFIRM_SECONDS is 0. */
export async function makePaidWorld({
  facilitatorWaitMs,
  processes = PROCESSES,
  embedded = false,
  ...options
}: PaidWorldOptions = {}): Promise<PaidWorld> {
  const world = await makeWorld({ ...options, embedded: embedded && IS_ALONE });
  const logs = new Map<string, PaidLog>();
  async function logOf(dataDir: string): Promise<PaidLog> {
    const log = logs.get(dataDir) ?? (await makePaidLog(dataDir, world.folder));
    logs.set(dataDir, log);
    return log;
  }
  const log = await logOf(world.dataDir);
  const chain = await startControlledChain();
  const facilitator = await startLocalFacilitator({
    rpcUrl: chain.url,
    ...(facilitatorWaitMs === undefined ? {} : { waitMs: facilitatorWaitMs }),
  });
  const proxy = await startFaultProxy(facilitator.url);
  const node = await startNodeFront(chain.url);
  const payTo = newPayer().address;
  const paying: Environment = {
    X402_ENABLED: 'true',
    X402_PAY_TO: payTo,
    X402_FACILITATOR_URL: proxy.url,
    X402_RPC_URL: node.url,
    X402_CONFIRM_SECONDS: '0',
  };
  /** What each payer is known to have paid. */
  const paidBy = new Map<Payer, bigint>();
  /** What the payee was found to have beside that. */
  let elsewhere = 0n;
  const inBooks = () => [...paidBy.values()].reduce((sum, one) => sum + one, elsewhere);
  const spentBy = async ({ address }: Payer) => PURSE - (await chain.balanceOf(address));
  const hits: PaidWorld['hits'] = ({ path }) =>
    world.target.requests.filter((request) => request.path === path).length;

  async function payers(count: number): Promise<Payer[]> {
    const made = Array.from({ length: count }, newPayer);
    await chain.mint(
      made.map(({ address }) => address),
      PURSE,
    );
    for (const payer of made) paidBy.set(payer, 0n);
    return made;
  }

  async function refund(transfers: readonly BatchTransfer[], from = payTo): Promise<Hex> {
    const hash = await sendBatch(chain, from, transfers);
    for (const { to, amount } of transfers) {
      for (const payer of paidBy.keys()) if (payer.address === to) paidBy.set(payer, await spentBy(payer));
      if (from !== payTo) elsewhere += amount;
    }
    return hash;
  }

  /** Words for what is not in the books, which it puts there: they are right again for the next row. */
  async function bookLate(came: bigint): Promise<string> {
    const late = [`${came} came to the payee, not ${inBooks()}`];
    for (const [payer, known] of paidBy) {
      const spent = await spentBy(payer);
      if (spent !== known) late.push(`${payer.address} paid ${spent}, not ${known}`);
      paidBy.set(payer, spent);
    }
    elsewhere += came - inBooks();
    return late.join('; ');
  }

  /** One process after the other: the first makes the key file. */
  async function start(more: Environment = {}, until?: 'rows' | 'listening'): Promise<Service> {
    const { env } = await logOf(more.DATA_DIR ?? world.dataDir);
    const services: Service[] = [];
    for (let n = 0; n < processes; n++)
      services.push(await world.start({ ...paying, ...env, ...more }, until));
    return together(services);
  }

  return {
    ...world,
    env: { ...world.env, ...paying, ...log.env },
    log,
    chain,
    node,
    proxy,
    payTo,
    payers,
    refund,
    hits,
    start,
    async samples(service, row, { count = SAMPLES, more = () => ({}), terms = {}, route = EXECUTE } = {}) {
      const asked = await challenge(`${service.url}${route}`);
      return Promise.all(
        (await payers(count)).map(async (payer, n) => {
          const path = `/${row}/${n}`;
          const request = { url: world.target.url(path), body: { row, n }, ...more(n) };
          return { n, payer, path, request, payment: await makePayment(payer, asked, terms) };
        }),
      );
    },
    async leaveUnknown(samples, fault, present) {
      proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? fault : 'pass'));
      node.blind(true);
      await each(samples, async (sample, n) =>
        assertSaid(await present(sample, n), 503, 'payment_unconfirmed'),
      );
      node.blind(false);
    },
    async assertBooks(samples, booked) {
      for (const sample of samples) {
        const { calls, charges } = typeof booked === 'function' ? booked(sample) : booked;
        const spent = await spentBy(sample.payer);
        const expected = { calls, charged: PRICE * BigInt(charges) };
        assert.deepEqual({ calls: hits(sample), charged: spent }, expected, sample.path);
        paidBy.set(sample.payer, spent);
      }
      const came = await chain.balanceOf(payTo);
      if (came !== inBooks()) assert.fail(await bookLate(came));
      countRows(samples.map(({ path }) => path));
    },
    async end() {
      await world.end();
      for (const one of logs.values()) await one.end();
      await proxy.down();
      await node.down();
      await facilitator.stop();
      await chain.stop();
    },
  };
}
