// A paid call to the service and what its answer must say: status, body, payment header, receipt.
import assert from 'node:assert/strict';
import type { SettleResponse } from '@x402/core/types';
import { TOKEN } from '#src/demo/payments/chain.ts';
import { sleep } from '#src/lib/time.ts';
import type { Payment } from '#test/support/chain/payer.ts';
import type { Service } from '#test/support/process/service.ts';
import type { Body, Sample } from './paid-world.ts';
import { payloadOf } from './service-receipts.ts';
import { type Answered, type ErrorBody, type Executed, post } from './service-world.ts';

export const EXECUTE = '/api/execute/webhook';
/** For what a decision approved. */
export const GUIDED = '/api/execute/guided-webhook';
export type PaidPath = typeof EXECUTE | typeof GUIDED;

/** `paid`: what the answer says of the payment, in the header of the version that presented it. */
export type Sent = Answered<Executed & ErrorBody> & { readonly paid: SettleResponse | null };

export type SendOptions = {
  readonly version?: 1 | 2;
  readonly payment?: Payment;
  readonly request?: unknown;
  readonly route?: PaidPath;
};

export async function send(service: Service, sample: Sample, options: SendOptions = {}): Promise<Sent> {
  const { version = 2, payment = sample.payment, request = sample.request, route = EXECUTE } = options;
  const answer = await post(`${service.url}${route}`, request, payment.headers[version]);
  const settlement = answer.headers.get(version === 2 ? 'payment-response' : 'x-payment-response');
  const paid = settlement === null ? null : JSON.parse(Buffer.from(settlement, 'base64').toString());
  return { ...answer, paid };
}

/** As an honest client does under load: 429 `too_many_in_flight` is answered by the same again, after `Retry-After`. */
export async function sendPatiently(
  service: Service,
  sample: Sample,
  options: SendOptions = {},
): Promise<Sent> {
  for (;;) {
    const sent = await send(service, sample, options);
    if (sent.status !== 429 || sent.body.error.code !== 'too_many_in_flight') return sent;
    const seconds = Number(sent.headers.get('retry-after'));
    await sleep(1000 * seconds);
  }
}

export type Delivered = {
  readonly status?: 200 | 502;
  readonly replay?: boolean;
  readonly version?: 1 | 2;
  /** false: no one could name it. */
  readonly transaction?: boolean;
};

/** A paid attempt as the contract requires it: status, payment header, body, and the receipt's payment. */
export function assertDelivered(sent: Sent, { payer }: Sample, expected: Delivered = {}): Executed {
  const { status = 200, replay = false, version = 2, transaction = true } = expected;
  assert.equal(sent.status, status, JSON.stringify(sent.body));
  const { job, receipt, payment, idempotentReplay } = sent.body;
  assert.deepEqual(
    [sent.body.mode, job.status, idempotentReplay, receipt.replay],
    ['x402', status === 200 ? 'succeeded' : 'failed', replay, replay],
  );
  assert.ok(sent.paid, `no payment header on ${status}`);
  const { success, network, payer: named, transaction: settledBy } = sent.paid;
  assert.deepEqual(
    [success, network, lower(named)],
    [true, version === 2 ? 'eip155:8453' : 'base', lower(payer.address)],
  );
  if (transaction) assert.match(settledBy, /^0x[0-9a-f]{64}$/);
  else assert.equal(settledBy, '');
  const facts = payloadOf(receipt.jws).payment;
  assert.ok(facts);
  const { scheme, network: on, asset, amount, payer: from, transaction: by, payloadHash, payTo } = facts;
  assert.deepEqual(
    [scheme, on, lower(asset), amount, from, by],
    ['exact', 'eip155:8453', lower(TOKEN), '3000', lower(payer.address), transaction ? settledBy : null],
  );
  assert.match(payloadHash, /^[0-9a-f]{64}$/);
  assert.deepEqual(payment, { network: on, asset, amount, payTo, payer: from, transaction: by });
  return sent.body;
}

const lower = (text: string | undefined) => text?.toLowerCase();

/** An answer with an error body, and nothing said of a payment. */
export function assertSaid(sent: Sent, status: number, ...codes: readonly string[]): void {
  const { error } = sent.body;
  assert.equal(sent.status, status, JSON.stringify(sent.body));
  const code = status === 402 ? undefined : error.code;
  assert.ok(codes.includes(code ?? ''), `${code}, not ${codes}`);
  assert.equal(sent.paid, null);
}

/** 20 copies of one payment at once, over all of these: one call, and every other copy replays it or must wait. */
export async function assertOneCall(
  services: readonly Service[],
  sample: Sample,
  expected: Pick<Delivered, 'transaction'> = {},
): Promise<void> {
  const copies = Array.from({ length: 20 }, (_, n) => services[n % services.length] ?? assert.fail());
  const sent = await Promise.all(copies.map((service) => send(service, sample)));
  assert.equal(sent.filter(({ status, body }) => status === 200 && !body.idempotentReplay).length, 1);
  for (const answer of sent) {
    if (answer.status === 200) {
      assertDelivered(answer, sample, { ...expected, replay: answer.body.idempotentReplay });
    } else if (answer.status === 409) assertSaid(answer, 409, 'idempotency_in_progress');
    else assertSaid(answer, 429, 'too_many_in_flight');
  }
}

/** A fresh challenge, payable by both versions; `reason` where the service named one. */
export function assertAskedToPay(sent: Sent): string {
  assert.equal(sent.status, 402, JSON.stringify(sent.body));
  assert.ok(sent.headers.get('payment-required'));
  const { x402Version, error, accepts } = sent.body as unknown as Body & { accepts: readonly unknown[] };
  assert.deepEqual([x402Version, accepts.length], [1, 1]);
  assert.equal(typeof error, 'string');
  assert.equal(sent.paid, null);
  return String(error);
}

/**
 * All of them, some at once: the service verifies 16 payments at a time. Rejects when all have ended: nothing of a row
 * that failed continues beside the next one.
 */
export async function each<T, R>(items: readonly T[], act: (item: T, n: number) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  const waiting = [...items.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [n, item] = next;
      done[n] = await act(item, n);
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: 16 }, worker));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
  return done;
}
