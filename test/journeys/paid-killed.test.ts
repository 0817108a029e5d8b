// kill -9 at every boundary of a paid call, several payments at each: a paid call is served once and charged once, and a call
// that may have been sent is never sent again, but listed as refundable.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openOperatorLog } from '#src/app/operator.ts';
import type { EventType } from '#src/domain/events.ts';
import type { OpenState } from '#src/domain/payment/ledger.ts';
import type { PaymentRow } from '#src/usecases/payments/list-payments.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { listOpenPayments } from '#test/support/given/books.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { IS_ALONE, ON_SERVER } from '#test/support/process/cells.ts';
import type { Fault } from '#test/support/process/fault-proxy.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { assertDelivered, assertSaid, each, send, sendPatiently } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';

const needs = needsAnvil();

type Boundary = {
  /** Names the payments' paths. */
  readonly row: string;
  /** The events of each payment in the log when the process dies, in order. */
  readonly recorded: readonly EventType[];
  /** The outcome of the settle call. */
  readonly fault?: Fault;
  /** The event that the process cannot store. */
  readonly held?: EventType;
  /** Counts outside the process: settle calls at the facilitator, transfers, requests at the target. */
  readonly reached?: (paid: PaidWorld, sample: Sample) => boolean;
  readonly more?: (paid: PaidWorld, n: number) => Record<string, unknown>;
  /** Before the facilitator receives the settle call. */
  readonly onSettle?: (paid: PaidWorld, n: number) => void;
  /** Of each payment when the process dies. */
  readonly calls: 0 | 1;
  readonly charges: 0 | 1;
  /** How an operator finds it before it is presented again. */
  readonly open: 'unserved' | 'refundable' | null;
};

const CLAIMED = ['PaymentReserved', 'IdempotencyKeyClaimed'] as const;
const SETTLED = [...CLAIMED, 'PaymentSettled'] as const;
const STARTED = [...SETTLED, 'JobStarted'] as const;
const settleCalls = (paid: PaidWorld, { payment }: Sample) => paid.proxy.callsOf('settle', payment.nonce);
const settling = (paid: PaidWorld, sample: Sample) => settleCalls(paid, sample).length === 1;

/** Each list is brought to its boundaries in this order, and then killed once. */
const LISTS: readonly (readonly Boundary[])[] = [
  [
    {
      row: 'in settle, before the money moved',
      recorded: CLAIMED,
      fault: 'hang',
      reached: settling,
      calls: 0,
      charges: 0,
      open: null,
    },
    {
      row: 'in settle, after the money moved',
      recorded: CLAIMED,
      fault: 'hang_after',
      reached: (paid, sample) => settleCalls(paid, sample).some(({ moved }) => moved),
      calls: 0,
      charges: 1,
      open: null,
    },
    {
      row: 'during the call',
      recorded: STARTED,
      more: ({ target }, n) => {
        target.answer(() => new Promise(() => undefined));
        return { url: target.url(`/during-the-call/${n}`) };
      },
      reached: (paid, sample) => paid.hits(sample) === 1,
      calls: 1,
      charges: 1,
      open: 'refundable',
    },
    {
      row: 'after JobStarted',
      recorded: STARTED,
      more: ({ target }, n) => ({ url: target.url(`/after-JobStarted/${n}`, `started-${n}.target.test`) }),
      // Its name is answered when the call is judged, and not any more when it is made.
      onSettle: ({ dns }, n) => dns.set(`started-${n}.target.test`, { drop: true }),
      calls: 0,
      charges: 1,
      open: 'refundable',
    },
  ],
  [
    {
      row: 'after PaymentSettled',
      recorded: SETTLED,
      // A success of the facilitator would be stored with the start, where the log can.
      fault: 'cut',
      held: 'JobStarted',
      calls: 0,
      charges: 1,
      open: 'unserved',
    },
    {
      row: 'after IdempotencyKeyClaimed, before the settle call arrives',
      recorded: CLAIMED,
      held: 'SettlementUnknown',
      fault: 'refuse',
      reached: settling,
      calls: 0,
      charges: 0,
      open: null,
    },
    {
      row: 'after PaymentReserved',
      recorded: ['PaymentReserved'],
      // Where the log can, the key is claimed with it: there, the call has none.
      ...(ON_SERVER
        ? { held: 'IdempotencyKeyClaimed' }
        : { fault: 'refuse', reached: settling, more: () => ({ idempotencyKey: undefined }) }),
      calls: 0,
      charges: 0,
      open: null,
    },
  ],
];

const isStarted = ({ recorded }: Boundary) => recorded === STARTED;

/** An attempt lasts 12 s at most: of many payments, those at a boundary within it have a kill of their own. */
const KILLS = LONG
  ? LISTS.flatMap((list) => [
      list.filter((boundary) => !isStarted(boundary)),
      ...list.filter(isStarted).map((boundary) => [boundary]),
    ])
  : LISTS;

describe('kill -9 of a paid call', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    paid = await makePaidWorld({ embedded: true });
    service = await start();
  });
  after(() => paid.end());

  /** Its settle calls hang longer than a slow machine takes to the kill, and no comparison with the chain finds their transfers. */
  const start = () => paid.start({ X402_FACILITATOR_TIMEOUT_MS: '40000', X402_CONFIRMATIONS: '1000' });

  /** Brings payments to each boundary, kills the process there, and starts another on its files. */
  async function killAt(boundaries: readonly Boundary[]): Promise<Map<Boundary, readonly Sample[]>> {
    const rows = new Map<Boundary, readonly Sample[]>();
    const owner = (isOwn: (sample: Sample) => boolean) => {
      for (const [boundary, samples] of rows) {
        const n = samples.findIndex(isOwn);
        if (n >= 0) return { boundary, n };
      }
      throw new Error('a payment of no row');
    };
    paid.proxy.rule(({ kind, nonce }) => {
      if (kind === 'verify') return 'pass';
      const { boundary, n } = owner(({ payment }) => payment.nonce.toLowerCase() === nonce);
      boundary.onSettle?.(paid, n);
      return boundary.fault ?? 'pass';
    });
    const calls: Promise<unknown>[] = [];
    const held: (() => void)[] = [];
    for (const boundary of boundaries) {
      const { row, recorded, reached = () => true, more } = boundary;
      const samples = await paid.samples(service, row.replaceAll(/[ ,]+/g, '-'), {
        more: (n) => ({ idempotencyKey: 'key', ...more?.(paid, n) }),
      });
      rows.set(boundary, samples);
      if (boundary.held !== undefined) held.push(paid.log.hold(boundary.held));
      // Any answer before the kill, then a closed connection.
      calls.push(...samples.map((sample) => sendPatiently(service, sample).catch(() => null)));
      await waitFor(`${row}: all stand still`, async () => {
        if (!samples.every((sample) => reached(paid, sample))) return false;
        const types = await typesOf(samples);
        return types.every((found) => found.length >= recorded.length);
      });
    }
    await service.kill();
    await Promise.all(calls);
    for (const letGo of held) letGo();
    paid.proxy.rule(() => 'pass');
    paid.target.answer(() => ({ status: 200 }));
    for (const [{ row, recorded }, samples] of rows)
      for (const found of await typesOf(samples)) assert.deepEqual(found, recorded, row);
    await paid.assertBooks([...rows.values()].flat(), (sample) => owner((own) => own === sample).boundary);
    service = await start();
    for (const [{ recorded, open }, samples] of rows) {
      // What may be under way is left to its owner for 45 s, then it is listed as unknown.
      if (recorded !== STARTED) await assertListed(samples, open ?? 'unknown', open !== null);
      // Where another process may be at it, each observes it from its own first read on.
      if (!IS_ALONE && !recorded.includes('PaymentSettled'))
        for (let n = 0; n < 2; n++)
          await each(samples, async (sample) =>
            assertSaid(await sendPatiently(service, sample), 409, 'idempotency_in_progress'),
          );
    }
    return rows;
  }

  async function typesOf(samples: readonly Sample[]): Promise<string[][]> {
    const events = await paid.log.recorded();
    return samples.map(({ payer }) => {
      const reserved = events.find(
        ({ type, data }) => type === 'PaymentReserved' && data.payer === payer.address.toLowerCase(),
      );
      return events
        .filter(({ data }) => reserved !== undefined && data.jobId === reserved.data.jobId)
        .map(({ type }) => type);
    });
  }

  /** What `relay payments` lists of these payers. */
  async function listed(samples: readonly Sample[]): Promise<PaymentRow[]> {
    const deps = await openOperatorLog(paid.log.config);
    const rows = await listOpenPayments(deps).finally(() => deps.log.close());
    const payers = new Set(samples.map(({ payer }) => payer.address.toLowerCase()));
    return rows.filter(({ payer }) => payers.has(payer));
  }

  for (const boundaries of KILLS) {
    describe(boundaries.map(({ row }) => row).join('; '), () => {
      let rows: Map<Boundary, readonly Sample[]>;
      before(async () => {
        rows = await killAt(boundaries);
      });

      for (const boundary of boundaries) {
        const { row, calls, charges } = boundary;
        const started = isStarted(boundary);
        const outcome = started
          ? 'closed as interrupted, never sent again, listed as refundable'
          : 'the same header is served once and charged once';
        test(`${row}: ${outcome}`, async () => {
          const samples = rows.get(boundary) ?? assert.fail();
          const ids = await each(samples, (sample) =>
            started ? assertInterrupted(sample) : assertServed(sample),
          );
          await paid.assertBooks(samples, started ? { calls, charges } : { calls: 1, charges: 1 });
          if (!started) return assert.deepEqual(await listed(samples), []);
          const due = await assertListed(samples, 'refundable');
          assert.deepEqual(due.map(({ jobId }) => jobId).sort(), ids.sort());
        });
      }
    });
  }

  /** `all` false: none of them may be listed yet. */
  async function assertListed(
    samples: readonly Sample[],
    state: OpenState,
    all = true,
  ): Promise<PaymentRow[]> {
    const found = await listed(samples);
    assert.deepEqual(
      found.map((payment) => payment.state),
      (all ? samples : found).map(() => state),
    );
    return found;
  }

  /** What another process may be at takes until it is left alone no more. */
  const patiently = (sample: Sample) =>
    waitFor(
      'another process is not waited for any more',
      async () => {
        const answer = await sendPatiently(service, sample);
        return answer.status !== 409 && answer;
      },
      IS_ALONE ? {} : { limitMs: 110_000, everyMs: 2500 },
    );

  /** Returns the job's id. */
  async function assertServed(sample: Sample): Promise<string> {
    const { job } = assertDelivered(await patiently(sample), sample);
    const again = await send(service, sample, { version: 1 });
    const expected = { replay: true, version: 1 } as const;
    assert.deepEqual(assertDelivered(again, sample, expected).job, job);
    assert.equal(settleCalls(paid, sample).filter(({ moved }) => moved).length, 1);
    return job.id;
  }

  /** Returns the job's id. */
  async function assertInterrupted(sample: Sample): Promise<string> {
    const { job, receipt } = assertDelivered(await patiently(sample), sample, { status: 502, replay: true });
    assert.equal(job.errorCategory, 'interrupted_unknown');
    assert.deepEqual(
      payloadOf(receipt.jws).attempts.map(({ sent, errorCategory }) => [sent, errorCategory]),
      [['maybe', 'interrupted_unknown']],
    );
    assert.equal(settleCalls(paid, sample).length, 1);
    return job.id;
  }
});
