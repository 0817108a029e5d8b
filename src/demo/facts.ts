// The facts of the demo: each compares a claim of the relay with what was received.
import type { Fact } from '#src/app/buyer.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import type { Primitives, VerificationReport } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { callLoopback, type Received } from './target.ts';

/** Ends the demo: the service did not do what the demo needs next. */
export class StoryFailed extends Error {}

export const fact = (name: string, ok: boolean, words: string): Fact => ({ name, ok, words });

/** The members of an execution response that the demo reads. */
export type Executed = {
  readonly idempotentReplay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: string;
    readonly attempts: number;
    readonly responseStatus: number | null;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly links: Readonly<Record<string, string>>;
};

/** The request that the demo sends. */
export const HEADERS = { 'x-order-source': 'relay demo' };
export const BODY = { event: 'order.paid', order: 4711, total: '12.50' };

export function deliveryFacts({ job }: Executed, received: Received, requests: number): Fact[] {
  const { method, headers, body } = received;
  const bodySame = new TextDecoder().decode(body) === JSON.stringify(BODY);
  const headerSame = headers['x-order-source'] === HEADERS['x-order-source'];
  return [
    fact(
      'job_succeeded',
      job.status === 'succeeded' && job.responseStatus === 200,
      'the job succeeded: the target answered 200',
    ),
    fact('called_once', requests === 1 && job.attempts === 1, 'the target received exactly one request'),
    fact(
      'request_as_sent',
      method === 'POST' && bodySame && headerSame,
      'method, header and body arrived as they were sent',
    ),
    fact('webhook_id_is_job', headers['webhook-id'] === job.id, 'its webhook-id is the id of the job'),
  ];
}

/** Standard Webhooks 1.0.0, asymmetric: any target can verify it with the published keys. */
export async function webhookSignatureFact(
  { headers, body }: Received,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<Fact> {
  const signed = Buffer.concat([utf8(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`), body]);
  const [version, base64 = ''] = (headers['webhook-signature'] ?? '').split(',');
  const signature = new Uint8Array(Buffer.from(base64, 'base64'));
  let ok = false;
  for (const { x } of keys) {
    const publicKey = fromBase64url(x);
    if (
      version === 'v1a' &&
      publicKey !== null &&
      (await primitives.ed25519Verify(publicKey, signed, signature))
    )
      ok = true;
  }
  return fact('webhook_signature_valid', ok, 'its webhook-signature (v1a) is valid under the published keys');
}

/** Reads the check of the inclusion proof. */
export function loggedFact({ checks }: VerificationReport): Fact {
  const logged = checks.find(({ name }) => name === 'receipt_logged');
  return fact(
    'receipt_logged',
    logged?.ok === true,
    'it is in the transparency log, included in a checkpoint that the relay signed',
  );
}

export function replayFacts(first: Executed, again: Executed, sentAgain: number): Fact[] {
  const sameReceipt = first.receipt.jws === again.receipt.jws && first.job.id === again.job.id;
  return [
    fact(
      'replayed',
      again.idempotentReplay && !first.idempotentReplay,
      'the repeat is answered with a replay',
    ),
    fact('replay_same_receipt', sameReceipt, 'with the same job and the same receipt'),
    fact('replay_not_sent', sentAgain === 0, 'and nothing was sent a second time'),
  ];
}

/** Requests every link of the response. */
export async function linkFacts({ links }: Executed): Promise<Fact[]> {
  const statuses = await Promise.all(
    Object.values(links).map(async (url) => [url, (await callLoopback('GET', url)).status] as const),
  );
  const broken = statuses
    .filter(([, status]) => status !== 200)
    .map(([url, status]) => `${url} answers ${status}`);
  return [
    fact('links_work', broken.length === 0, broken.length === 0 ? 'all links answer' : broken.join(', ')),
  ];
}
