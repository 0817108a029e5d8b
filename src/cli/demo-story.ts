// The demo's story: one webhook through the real route, its receipt verified offline, the call repeated.
// Every claim it makes is compared, not assumed.
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fromBase64url, utf8 } from '../domain/bytes.ts';
import { fromJwkSet, type KeyRecord } from '../domain/receipt/keys.ts';
import { type Primitives, type VerificationReport, verifyReceipt } from '../domain/receipt/verify.ts';
import type { DemoTarget, Received } from './demo-target.ts';
import { FoundWrong } from './exit.ts';
import { callLoopback } from './loopback-client.ts';

export type Fact = { readonly name: string; readonly ok: boolean; readonly words: string };

/** The members of an execution response that the story needs. */
export type Executed = {
  readonly idempotentReplay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: string;
    readonly attempts: number;
    readonly responseStatus: number;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly links: Readonly<Record<string, string>>;
};

export type Story = {
  readonly ok: boolean;
  readonly service: string;
  readonly sent: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
  readonly received: {
    readonly method: string;
    readonly path: string;
    readonly headers: Received['headers'];
    readonly body: string;
  };
  readonly job: Executed['job'];
  readonly receipt: Executed['receipt'];
  /** The offline report: made from the two files alone. */
  readonly verification: VerificationReport;
  readonly replay: {
    readonly idempotentReplay: boolean;
    readonly receiptId: string;
    readonly requestsAtTarget: number;
  };
  readonly facts: readonly Fact[];
  readonly files: { readonly receipt: string; readonly keys: string };
  readonly links: Executed['links'];
};

export type StoryDeps = {
  readonly baseUrl: string;
  readonly target: DemoTarget;
  /** Gets `receipt.json` and `jwks.json`. */
  readonly folder: string;
  readonly primitives: Primitives;
};

const HEADERS = { 'x-order-source': 'relay demo' };
const BODY = { event: 'order.paid', order: 4711, total: '12.50' };

/** Throws `FoundWrong` where the story cannot go on. */
export async function runStory(deps: StoryDeps): Promise<Story> {
  const { baseUrl, target, folder, primitives } = deps;
  const request = {
    url: target.url,
    method: 'POST',
    headers: HEADERS,
    body: BODY,
    idempotencyKey: randomUUID(),
  };
  const first = await execute(baseUrl, request);
  const [received] = target.received;
  if (received === undefined)
    throw new FoundWrong('the service says it called the target, and nothing came there');
  const files = await saveEvidence(folder, baseUrl, first);
  const { verification, keys } = await verifyOffline(files, primitives);
  const again = await execute(baseUrl, request);
  const facts: Fact[] = [
    ...deliveryFacts(first, received, target.received.length - (again.idempotentReplay ? 0 : 1)),
    await webhookSignatureFact(received, keys, primitives),
    fact(
      'receipt_verified_offline',
      verification.ok,
      'the receipt verifies offline, by the saved receipt and keys alone',
    ),
    ...replayFacts(first, again, target.received.length),
    ...(await linkFacts(first)),
  ];
  return {
    ok: facts.every(({ ok }) => ok),
    service: baseUrl,
    sent: { url: target.url, headers: HEADERS, body: BODY },
    received: { ...received, body: new TextDecoder().decode(received.body) },
    job: first.job,
    receipt: first.receipt,
    verification,
    replay: {
      idempotentReplay: again.idempotentReplay,
      receiptId: again.receipt.id,
      requestsAtTarget: target.received.length,
    },
    facts,
    files,
    links: first.links,
  };
}

const fact = (name: string, ok: boolean, words: string): Fact => ({ name, ok, words });

async function execute(baseUrl: string, request: unknown): Promise<Executed> {
  const { status, body } = await callLoopback('POST', `${baseUrl}/api/execute/webhook`, request);
  // 502: the target failed. It is an execution too, and the facts tell what is wrong with it.
  if (status === 200 || status === 502) return JSON.parse(body);
  throw new FoundWrong(`POST /api/execute/webhook answered ${status}: ${body}`);
}

/** What an agent would keep beside its task: the receipt as the service serves it, and the published keys. */
async function saveEvidence(folder: string, baseUrl: string, { links }: Executed): Promise<Story['files']> {
  const files = { receipt: join(folder, 'receipt.json'), keys: join(folder, 'jwks.json') };
  await writeFile(files.receipt, await download(links.receipt ?? `${baseUrl}/api/receipts`));
  await writeFile(files.keys, await download(`${baseUrl}/.well-known/jwks.json`));
  return files;
}

async function download(url: string): Promise<string> {
  const { status, body } = await callLoopback('GET', url);
  if (status !== 200) throw new FoundWrong(`${url} answered ${status}: ${body}`);
  return body;
}

async function verifyOffline(files: Story['files'], primitives: Primitives) {
  const { id, jws } = JSON.parse(await readFile(files.receipt, 'utf8'));
  const keys = fromJwkSet(JSON.parse(await readFile(files.keys, 'utf8'))) ?? [];
  const facts = { jws: String(jws), receiptId: String(id), jobId: null, keys, job: null };
  return { verification: await verifyReceipt(facts, primitives), keys };
}

function deliveryFacts({ job }: Executed, received: Received, requests: number): Fact[] {
  const { method, headers, body } = received;
  const bodySame = new TextDecoder().decode(body) === JSON.stringify(BODY);
  const headerSame = headers['x-order-source'] === HEADERS['x-order-source'];
  return [
    fact(
      'job_succeeded',
      job.status === 'succeeded' && job.responseStatus === 200,
      'the job succeeded: the target answered 200',
    ),
    fact('called_once', requests === 1 && job.attempts === 1, 'the target got exactly one request'),
    fact(
      'request_as_sent',
      method === 'POST' && bodySame && headerSame,
      'method, header and body came as they were sent',
    ),
    fact('webhook_id_is_job', headers['webhook-id'] === job.id, 'its webhook-id is the id of the job'),
  ];
}

/** Standard Webhooks 1.0.0, asymmetric: what any target can check with the published keys. */
async function webhookSignatureFact(
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
  return fact('webhook_signature_valid', ok, 'its webhook-signature (v1a) is good by the published keys');
}

function replayFacts(first: Executed, again: Executed, requests: number): Fact[] {
  const sameReceipt = first.receipt.jws === again.receipt.jws && first.job.id === again.job.id;
  return [
    fact('replayed', again.idempotentReplay && !first.idempotentReplay, 'the repeat is answered as a replay'),
    fact('replay_same_receipt', sameReceipt, 'with the same job and the same receipt'),
    fact('replay_not_sent', requests === 1, 'and nothing was sent a second time'),
  ];
}

/** Every address that an answer holds works. */
async function linkFacts({ links }: Executed): Promise<Fact[]> {
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
