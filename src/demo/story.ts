// The demo: executes one webhook through the real route, verifies its receipt offline, and repeats the call. Each fact
// compares a claim of the relay with what was received.

import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Fact, PaidExecution } from '#src/app/buyer.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { fromJwkSet, type KeyRecord, type Primitives } from '#src/domain/signing-keys/keys.ts';
import type { WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { sleep } from '#src/lib/time.ts';
import { callLoopback, type DemoTarget, type Received } from './target.ts';
import type { DemoWitnesses } from './witnesses.ts';

/** Ends the demo: the service did not do what the demo needs next. */
export class StoryFailed extends OperatorError {}

const HEADERS = { 'x-order-source': 'relay demo' };
const BODY = { event: 'order.paid', order: 4711, total: '12.50' };
export type DemoRequest = { readonly url: string; readonly body: unknown; readonly method: 'POST' };

/** Makes the call, with or without payment. Both throw `StoryFailed` if there is no execution response. */
export type Caller = {
  execute(request: DemoRequest): Promise<PaidExecution>;
  /** The same call again, as after a lost response. */
  repeat(request: DemoRequest): Promise<PaidExecution>;
  /** About the payment, after both. */
  facts(): readonly Fact[];
};

export type Story = {
  readonly ok: boolean;
  readonly service: string;
  readonly received: Omit<Received, 'body'> & { readonly body: string };
  readonly job: PaidExecution['job'];
  readonly receipt: PaidExecution['receipt'];
  /** The offline report, from the four files only. */
  readonly verification: VerificationReport;
  readonly facts: readonly Fact[];
  readonly files: {
    readonly receipt: string;
    readonly keys: string;
    readonly proof: string;
    readonly policy: string;
  };
  readonly links: PaidExecution['links'];
};

export type StoryDeps = {
  readonly baseUrl: string;
  readonly target: Pick<DemoTarget, 'url' | 'received'>;
  /** Of the two witnesses. */
  readonly witnesses: Pick<DemoWitnesses, 'file' | 'policy'>;
  /** Folder for `receipt.json`, `jwks.json` and `receipt.tlog-proof`. */
  readonly folder: string;
  readonly primitives: Primitives;
  readonly caller: Caller;
};

/** Calls the route without payment. */
export const freeCaller = (baseUrl: string): Caller => {
  const idempotencyKey = randomUUID();
  const execute = async (request: DemoRequest) => {
    const call = { ...request, idempotencyKey };
    const { status, body } = await callLoopback('POST', `${baseUrl}/api/execute/webhook`, call);
    // 502: the target failed. It is an execution too, and the facts show what is wrong.
    if (status === 200 || status === 502) return JSON.parse(body);
    throw new StoryFailed(`POST /api/execute/webhook answered ${status}: ${body}`);
  };
  return { execute, repeat: execute, facts: () => [] };
};

/** Throws `StoryFailed` if the demo cannot continue. */
export async function runStory(deps: StoryDeps): Promise<Story> {
  const { baseUrl, target, folder, primitives, caller, witnesses } = deps;
  const request = { url: target.url, method: 'POST', headers: HEADERS, body: BODY } as const;
  const first = await caller.execute(request);
  const [received] = target.received;
  if (received === undefined)
    throw new StoryFailed('the service states that it called the target, but the target received nothing');
  const requests = target.received.length;
  const files = { ...(await saveEvidence(folder, baseUrl, first, witnesses)), policy: witnesses.file };
  const { verification, keys, jws } = await verifyOffline(files, witnesses.policy, primitives);
  const again = await caller.repeat(request);
  const { job, receipt, links } = first;
  const logged = verification.checks.find(({ name }) => name === 'receipt_logged');
  const witnessed = verification.checks.find((check) => check.name === 'receipt_witnessed');
  const broken = await brokenLinks(links);
  const facts = [
    ...deliveryFacts(first, received, requests),
    fact(
      'webhook_signature_valid',
      await webhookSigned(received, keys, primitives),
      'its webhook-signature (v1a) is valid under the published keys',
    ),
    fact(
      'receipt_verified_offline',
      verification.ok && jws === receipt.jws,
      'the receipt verifies offline, with the saved receipt, keys and proof only',
    ),
    fact(
      'receipt_logged',
      logged?.ok === true,
      'it is in the transparency log, included in a checkpoint that the relay signed',
    ),
    fact(
      'receipt_witnessed',
      witnessed?.name === 'receipt_witnessed' && witnessed.details?.quorum === true,
      'two witnesses have cosigned that checkpoint: no reader is shown another history',
    ),
    ...replayFacts(first, again, target.received.length - requests),
    ...caller.facts(),
    fact('links_work', broken.length === 0, broken.join(', ') || 'all links answer'),
  ];
  const text = { ...received, body: new TextDecoder().decode(received.body) };
  const ok = facts.every((each) => each.ok);
  return { ok, service: baseUrl, received: text, job, receipt, verification, facts, files, links };
}

export const fact = (name: string, ok: boolean, words: string): Fact => ({ name, ok, words });

function deliveryFacts({ job }: PaidExecution, received: Received, requests: number): Fact[] {
  const { method, headers, body } = received;
  const same =
    method === 'POST' &&
    new TextDecoder().decode(body) === JSON.stringify(BODY) &&
    headers['x-order-source'] === HEADERS['x-order-source'];
  return [
    fact(
      'job_succeeded',
      job.status === 'succeeded' && job.responseStatus === 200,
      'the job succeeded: the target answered 200',
    ),
    fact('called_once', requests === 1 && job.attempts === 1, 'the target received exactly one request'),
    fact('request_as_sent', same, 'method, header and body arrived as they were sent'),
    fact('webhook_id_is_job', headers['webhook-id'] === job.id, 'its webhook-id is the id of the job'),
  ];
}

/** Standard Webhooks 1.0.0, asymmetric: any target can verify it with the published keys. */
async function webhookSigned(
  { headers, body }: Received,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<boolean> {
  const signed = Buffer.concat([utf8(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`), body]);
  const [version, base64 = ''] = (headers['webhook-signature'] ?? '').split(',');
  const signature = new Uint8Array(Buffer.from(base64, 'base64'));
  const valid = await Promise.all(
    keys.map(({ x }) => primitives.ed25519Verify(fromBase64url(x) ?? new Uint8Array(0), signed, signature)),
  );
  return version === 'v1a' && valid.includes(true);
}

function replayFacts(first: PaidExecution, again: PaidExecution, sentAgain: number): Fact[] {
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

async function brokenLinks(links: PaidExecution['links']): Promise<string[]> {
  const problems = await Promise.all(
    Object.values(links).map(async (url) => {
      const { status } = await callLoopback('GET', url);
      return status === 200 ? [] : [`${url} answers ${status}`];
    }),
  );
  return problems.flat();
}

/** Saves the files that an agent would keep: the receipt, the keys, and the inclusion proof. */
async function saveEvidence(
  folder: string,
  baseUrl: string,
  { links, receipt }: PaidExecution,
  { policy }: StoryDeps['witnesses'],
): Promise<Omit<Story['files'], 'policy'>> {
  const files = {
    receipt: join(folder, 'receipt.json'),
    keys: join(folder, 'jwks.json'),
    proof: join(folder, 'receipt.tlog-proof'),
  };
  await writeFile(files.receipt, await download(links.receipt ?? `${baseUrl}/api/receipts`));
  await writeFile(files.keys, await download(`${baseUrl}/.well-known/jwks.json`));
  await writeFile(files.proof, await download(`${baseUrl}/log/proof/${receipt.id}`, isCosignedBy(policy)));
  return files;
}

/** Whether the proof's checkpoint has a line of each witness. Verified later, offline. */
const isCosignedBy =
  ({ witnesses }: WitnessPolicy) =>
  (proof: string): boolean =>
    witnesses.every(({ key }) => proof.includes(`\n— ${key.name} `));

/** 409: not in the log yet. The next checkpoint is signed within some seconds, and cosigned some seconds later. */
const PROOF_WAIT = { withinMs: 60_000, everyMs: 100 };

async function download(url: string, isComplete = (_body: string) => true): Promise<string> {
  const until = performance.now() + PROOF_WAIT.withinMs;
  for (;;) {
    const { status, body } = await callLoopback('GET', url);
    const isLate = performance.now() > until;
    if (status === 200 && (isComplete(body) || isLate)) return body;
    if ((status !== 200 && status !== 409) || isLate)
      throw new StoryFailed(`${url} answered ${status}: ${body}`);
    await sleep(PROOF_WAIT.everyMs);
  }
}

async function verifyOffline(files: Story['files'], policy: WitnessPolicy, primitives: Primitives) {
  const { id, jws } = JSON.parse(await readFile(files.receipt, 'utf8'));
  const keys = fromJwkSet(JSON.parse(await readFile(files.keys, 'utf8'))) ?? [];
  const now = Math.floor(Date.now() / 1000);
  const log = { proof: await readFile(files.proof, 'utf8'), now, policy };
  const facts = { jws: String(jws), receiptId: String(id), jobId: null, keys, job: null, log };
  return { verification: await verifySignedReceipt(facts, primitives), keys, jws: facts.jws };
}
