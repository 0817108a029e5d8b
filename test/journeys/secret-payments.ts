// A paid world in which every secret is a word that can be searched for: the operator's URLs, what callers send, what
// clients write beside a payment. It remembers every payment presented and every answer to it.

import { type ApiKey, cdpGuard, environmentOf, newApiKey } from '#test/support/chain/facilitator-login.ts';
import { altered, type Payment } from '#test/support/chain/payer.ts';
import { canaryFor } from '#test/support/given/canaries.ts';
import { type SecretFront, startSecretFront } from '#test/support/process/secret-front.ts';
import type { Service } from '#test/support/process/service.ts';
import {
  assertDelivered,
  assertSaid,
  type SendOptions,
  type Sent,
  sendPatiently,
} from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

/** Keys in the operator's URLs, and the id of the API key at the facilitator. */
export const OPERATORS = ['rpcpath', 'rpcquery', 'facilitator', 'keyid'].map(canaryFor);
/** What reaches the target. */
export const SENT = ['path', 'query', 'header', 'body'].map(canaryFor);
export const KEY = canaryFor('key');
/** What a payer's client writes into a payment header beside the payment. */
export const ASIDE = canaryFor('aside');
export const WORDS = [...OPERATORS, ...SENT, KEY, ASIDE];

export type SecretWorld = {
  readonly paid: PaidWorld;
  readonly service: Service;
  readonly rpc: SecretFront;
  readonly facilitator: SecretFront;
  /** Logs in at the facilitator. */
  readonly apiKey: ApiKey;
  /** Every token that was sent to it. */
  readonly tokens: readonly string[];
  /** Every payment ever presented, by its sample's path and a number. */
  readonly payments: ReadonlyMap<string, Payment>;
  readonly samples: readonly Sample[];
  /** Every answer to `pay`. */
  readonly own: readonly Sent[];
  /** A request that holds all words of a caller. */
  action(row: string): Record<string, unknown>;
  /** Two of a row: the first pays by version 2, the second by version 1. */
  payers(row: string, request?: Record<string, unknown>): Promise<Sample[]>;
  pay(sample: Sample, options?: SendOptions): Promise<Sent>;
  assertServed(sample: Sample, options?: SendOptions): Promise<void>;
  /** 503 with this code after `fails`; the same header is served after `mended`. */
  assertServedLater(row: string, code: string, fails: () => unknown, mended: () => unknown): Promise<void>;
  end(): Promise<void>;
};

export async function makeSecretWorld(): Promise<SecretWorld> {
  const paid = await makePaidWorld({ embedded: true });
  const [path = '', query = '', provider = '', keyId = ''] = OPERATORS;
  const rpc = await startSecretFront(paid.chain.url, { path, query: `key=${query}` });
  const apiKey = newApiKey('ed25519', keyId);
  const guard = cdpGuard(() => [apiKey]);
  const facilitator = await startSecretFront(paid.proxy.url, { path: provider, guard });
  const urls = { X402_RPC_URL: rpc.url, X402_FACILITATOR_URL: facilitator.url };
  const service = await paid.start({ ...urls, ...environmentOf(apiKey), LOG_LEVEL: 'debug' });
  const payments = new Map<string, Payment>();
  const samples: Sample[] = [];
  const own: Sent[] = [];
  const versionOf = ({ n }: Sample) => (n === 0 ? 2 : 1);

  const action: SecretWorld['action'] = (row) => {
    const [inPath, inQuery, inHeader = '', inBody = ''] = SENT;
    return {
      url: `${paid.target.url(`/${inPath}/${row}`)}?${inQuery}=${inQuery}`,
      headers: { [inHeader]: inHeader, authorization: `Bearer ${inHeader}` },
      body: { [inBody]: inBody },
      idempotencyKey: `${KEY} ${row}`,
    };
  };

  async function pay(sample: Sample, options: SendOptions = {}): Promise<Sent> {
    payments.set(`${sample.path} ${payments.size}`, options.payment ?? sample.payment);
    const sent = await sendPatiently(service, sample, { version: versionOf(sample), ...options });
    own.push(sent);
    return sent;
  }

  async function assertServed(sample: Sample, options: SendOptions = {}): Promise<void> {
    assertDelivered(await pay(sample, options), sample, { version: versionOf(sample) });
  }

  async function payers(row: string, request = action(row)): Promise<Sample[]> {
    const made = await paid.samples(service, row, { count: 2, more: () => request });
    const marked = made.map((sample) => ({ ...sample, payment: withAside(sample.payment) }));
    samples.push(...marked);
    return marked;
  }

  return {
    paid,
    service,
    rpc,
    facilitator,
    apiKey,
    tokens: guard.seen,
    payments,
    samples,
    own,
    action,
    payers,
    pay,
    assertServed,
    async assertServedLater(row, code, fails, mended) {
      const waiting = await payers(row);
      await fails();
      for (const sample of waiting) assertSaid(await pay(sample), 503, code);
      await mended();
      for (const sample of waiting) await assertServed(sample);
    },
    async end() {
      await paid.end();
      await Promise.all([rpc.down(), facilitator.down()]);
    },
  };
}

const withAside = (payment: Payment) =>
  altered(payment, (payload, signed) => {
    payload.resource = { url: `https://${ASIDE}.example/${ASIDE}`, description: ASIDE };
    payload.extensions = { [ASIDE]: ASIDE };
    Object.assign(signed, { [ASIDE]: ASIDE });
  });
