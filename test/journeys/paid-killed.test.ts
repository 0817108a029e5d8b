// kill -9 at every boundary of a paid call, several payments at each: a paid call is served once and charged once, and a call
// that may have been sent is never sent again, but listed as refundable.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/cli.ts';
import type { Fault } from '#test/support/fault-proxy.ts';
import { holdBack } from '#test/support/held-appends.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertDelivered, each, send, sendPatiently } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { recordedIn } from '#test/support/service-log.ts';
import { payloadOf } from '#test/support/service-receipts.ts';

const needs = needsAnvil();

type Boundary = {
  /** The events of each payment in the log when the process dies, in order. */
  readonly recorded: readonly string[];
  /** The outcome of the settle call. */
  readonly fault?: Fault;
  /** The event that the process cannot store. */
  readonly held?: Parameters<typeof holdBack>[1];
  /** Counts outside the process: settle calls at the facilitator, transfers, requests at the target. */
  readonly reached?: (paid: PaidWorld, sample: Sample) => boolean;
  readonly more?: (paid: PaidWorld, n: number) => Record<string, unknown>;
  /** Before the facilitator receives the settle call. */
  readonly onSettle?: (paid: PaidWorld, n: number) => void;
};

const CLAIMED = ['PaymentReserved', 'IdempotencyKeyClaimed'];
const SETTLED = [...CLAIMED, 'PaymentSettled'];
const STARTED = [...SETTLED, 'JobStarted'];
const settleCalls = (paid: PaidWorld, { payment }: Sample) => paid.proxy.callsOf('settle', payment.nonce);

describe('kill -9 of a paid call', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld({ embedded: true });
    service = await paid.start();
  });
  after(() => paid?.end());

  /** Brings the payments to one boundary, kills the process there, and starts another on its files. */
  async function killAt(row: string, boundary: Boundary): Promise<readonly Sample[]> {
    const { fault = 'pass', held, recorded, reached = () => true, more, onSettle } = boundary;
    const samples = await paid.samples(service, row, {
      more: (n) => ({ idempotencyKey: 'key', ...more?.(paid, n) }),
    });
    paid.proxy.rule(({ kind, nonce }) => {
      if (kind === 'verify') return 'pass';
      const n = samples.findIndex(({ payment }) => payment.nonce.toLowerCase() === nonce);
      onSettle?.(paid, n);
      return fault;
    });
    const letGo = held === undefined ? null : holdBack(paid.dataDir, held);
    // Any answer before the kill, then a closed connection.
    const calls = samples.map((sample) => sendPatiently(service, sample).catch(() => null));
    await waitFor(`${row}: all stand still`, async () => {
      if (!samples.every((sample) => reached(paid, sample))) return false;
      const types = await typesOf(samples);
      return types.every((found) => found.length >= recorded.length);
    });
    await service.kill();
    await Promise.all(calls);
    letGo?.();
    paid.proxy.rule(() => 'pass');
    paid.target.answer(() => ({ status: 200 }));
    for (const found of await typesOf(samples)) assert.deepEqual(found, recorded);
    service = await paid.start();
    return samples;
  }

  async function typesOf(samples: readonly Sample[]): Promise<string[][]> {
    const events = await recordedIn(paid.dataDir);
    return samples.map(({ payer }) => {
      const reserved = events.find(
        ({ type, data }) => type === 'PaymentReserved' && data.payer === payer.address.toLowerCase(),
      );
      return events
        .filter(({ data }) => reserved !== undefined && data.jobId === reserved.data.jobId)
        .map(({ type }) => type);
    });
  }

  type Row = { readonly state: string; readonly payer: string; readonly jobId: string };

  /** Of these payers, as in `relay payments`; the payments of the others are not listed. */
  async function listedBy(flag: '--unserved' | '--unknown', samples: readonly Sample[]): Promise<Row[]> {
    const { code, stdout, stderr } = await runCli(['payments', flag, '--json'], { env: paid.env });
    assert.equal(code, 0, stderr);
    const rows: Row[] = JSON.parse(stdout);
    const payers = new Set(samples.map(({ payer }) => payer.address.toLowerCase()));
    return rows.filter(({ payer }) => payers.has(payer));
  }

  for (const [row, boundary, charged, listed] of [
    ['after PaymentReserved', { recorded: ['PaymentReserved'], held: 'IdempotencyKeyClaimed' }, 0, []],
    [
      'after IdempotencyKeyClaimed, before the settle call arrives',
      {
        recorded: CLAIMED,
        held: 'SettlementUnknown',
        fault: 'refuse',
        reached: (world, sample) => settleCalls(world, sample).length === 1,
      },
      0,
      [],
    ],
    [
      'in settle, before the money moved',
      {
        recorded: CLAIMED,
        fault: 'hang',
        reached: (world, sample) => settleCalls(world, sample).length === 1,
      },
      0,
      [],
    ],
    [
      'in settle, after the money moved',
      {
        recorded: CLAIMED,
        fault: 'hang_after',
        reached: (world, sample) => settleCalls(world, sample).some(({ moved }) => moved),
      },
      1,
      [],
    ],
    ['after PaymentSettled', { recorded: SETTLED, held: 'JobStarted' }, 1, ['unserved']],
  ] as const satisfies readonly (readonly [string, Boundary, 0 | 1, readonly string[]])[]) {
    test(`${row}: the same header is served once and charged once`, needs, async () => {
      const samples = await killAt(row.replaceAll(' ', '-'), boundary);
      await paid.assertBooks(samples, { calls: 0, charges: charged });
      // A settlement that another process may still be at is nothing to look after yet.
      const open = await listedBy('--unserved', samples);
      assert.deepEqual(
        open.map(({ state }) => state),
        samples.flatMap(() => listed),
      );
      await each(samples, async (sample) => {
        // The transaction of a settlement whose answer was lost with the process is unknown.
        const transaction = charged === 0 || listed.length > 0;
        const { job } = assertDelivered(await sendPatiently(service, sample), sample, { transaction });
        const { payer } = open.find(({ jobId }) => jobId === job.id) ?? {};
        if (listed.length > 0) assert.equal(payer, sample.payer.address.toLowerCase());
        const again = await send(service, sample, { version: 1 });
        const expected = { transaction, replay: true, version: 1 } as const;
        assert.deepEqual(assertDelivered(again, sample, expected).job, job);
        assert.equal(settleCalls(paid, sample).filter(({ moved }) => moved).length, 1);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
      assert.deepEqual(
        [...(await listedBy('--unserved', samples)), ...(await listedBy('--unknown', samples))],
        [],
      );
    });
  }

  for (const [row, boundary, calls] of [
    [
      'after JobStarted',
      {
        recorded: STARTED,
        more: ({ target }, n) => ({ url: target.url(`/after-JobStarted/${n}`, `started-${n}.target.test`) }),
        // Its name is answered when the call is judged, and not any more when it is made.
        onSettle: ({ dns }, n) => dns.set(`started-${n}.target.test`, { drop: true }),
      },
      0,
    ],
    [
      'during the call',
      {
        recorded: STARTED,
        more: ({ target }, n) => {
          target.answer(() => new Promise(() => undefined));
          return { url: target.url(`/during-the-call/${n}`) };
        },
        reached: (world, sample) => world.hits(sample) === 1,
      },
      1,
    ],
  ] as const satisfies readonly (readonly [string, Boundary, 0 | 1])[]) {
    test(`${row}: closed as interrupted, never sent again, listed as refundable`, needs, async () => {
      const samples = await killAt(row.replaceAll(' ', '-'), boundary);
      await paid.assertBooks(samples, { calls, charges: 1 });
      const ids = await each(samples, async (sample) => {
        const sent = await waitFor('the job is closed', async () => {
          const answer = await send(service, sample);
          return answer.status !== 409 && answer;
        });
        const { job, receipt } = assertDelivered(sent, sample, { status: 502, replay: true });
        assert.equal(job.errorCategory, 'interrupted_unknown');
        assert.deepEqual(
          payloadOf(receipt.jws).attempts.map(({ sent, errorCategory }) => [sent, errorCategory]),
          [['maybe', 'interrupted_unknown']],
        );
        assert.equal(settleCalls(paid, sample).length, 1);
        return job.id;
      });
      await paid.assertBooks(samples, { calls, charges: 1 });
      const open = await listedBy('--unserved', samples);
      assert.deepEqual(
        open.map(({ state }) => state),
        samples.map(() => 'refundable'),
      );
      assert.deepEqual(open.map(({ jobId }) => jobId).sort(), ids.sort());
    });
  }
});
