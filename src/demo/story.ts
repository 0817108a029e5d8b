// The demo: executes one webhook through the real route, verifies its receipt offline, and repeats the call.
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Fact } from '#src/app/buyer.ts';
import type { Primitives, VerificationReport } from '#src/domain/receipt/report.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { sleep } from '#src/lib/time.ts';
import {
  BODY,
  deliveryFacts,
  type Executed,
  fact,
  HEADERS,
  linkFacts,
  loggedFact,
  replayFacts,
  StoryFailed,
  webhookSignatureFact,
} from './facts.ts';
import { callLoopback, type DemoTarget, type Received } from './target.ts';

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
  /** The offline report, from the three files only. */
  readonly verification: VerificationReport;
  readonly replay: {
    readonly idempotentReplay: boolean;
    readonly receiptId: string;
    readonly requestsAtTarget: number;
  };
  readonly facts: readonly Fact[];
  readonly files: { readonly receipt: string; readonly keys: string; readonly proof: string };
  readonly links: Executed['links'];
};

export type StoryDeps = {
  readonly baseUrl: string;
  readonly target: DemoTarget;
  /** Folder for `receipt.json`, `jwks.json` and `receipt.tlog-proof`. */
  readonly folder: string;
  readonly primitives: Primitives;
};

/** Throws `StoryFailed` if the demo cannot continue. */
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
  const { received, requests } = receivedBy(target);
  const files = await saveEvidence(folder, baseUrl, first);
  const { verification, keys } = await verifyOffline(files, primitives);
  const again = await execute(baseUrl, request);
  const facts: Fact[] = [
    ...deliveryFacts(first, received, requests),
    await webhookSignatureFact(received, keys, primitives),
    fact(
      'receipt_verified_offline',
      verification.ok,
      'the receipt verifies offline, with the saved receipt, keys and proof only',
    ),
    loggedFact(verification),
    ...replayFacts(first, again, target.received.length - requests),
    ...(await linkFacts(first)),
  ];
  return storyOf(deps, { first, again, received, verification, facts, files });
}

/** Returns the first request at the target, and the number of requests. Throws `StoryFailed` if there is none. */
export function receivedBy(target: DemoTarget): { readonly received: Received; readonly requests: number } {
  const [received] = target.received;
  if (received === undefined)
    throw new StoryFailed('the service states that it called the target, but the target received nothing');
  return { received, requests: target.received.length };
}

type Observed = Pick<Story, 'verification' | 'facts' | 'files'> & {
  readonly first: Executed;
  readonly again: Executed;
  readonly received: Received;
};

export function storyOf({ baseUrl, target }: StoryDeps, observed: Observed): Story {
  const { first, again, received, verification, facts, files } = observed;
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

async function execute(baseUrl: string, request: unknown): Promise<Executed> {
  const { status, body } = await callLoopback('POST', `${baseUrl}/api/execute/webhook`, request);
  // 502: the target failed. It is an execution too, and the facts show what is wrong.
  if (status === 200 || status === 502) return JSON.parse(body);
  throw new StoryFailed(`POST /api/execute/webhook answered ${status}: ${body}`);
}

/** Saves the files that an agent would keep: the receipt, the keys, and the inclusion proof. */
export async function saveEvidence(
  folder: string,
  baseUrl: string,
  { links, receipt }: Pick<Executed, 'links' | 'receipt'>,
): Promise<Story['files']> {
  const files = {
    receipt: join(folder, 'receipt.json'),
    keys: join(folder, 'jwks.json'),
    proof: join(folder, 'receipt.tlog-proof'),
  };
  await writeFile(files.receipt, await download(links.receipt ?? `${baseUrl}/api/receipts`));
  await writeFile(files.keys, await download(`${baseUrl}/.well-known/jwks.json`));
  await writeFile(files.proof, await downloadProof(`${baseUrl}/log/proof/${receipt.id}`));
  return files;
}

/** The next checkpoint is signed within some seconds. */
const PROOF_WAIT = { withinMs: 15_000, everyMs: 100 };

async function downloadProof(url: string): Promise<string> {
  const until = performance.now() + PROOF_WAIT.withinMs;
  for (;;) {
    const { status, body } = await callLoopback('GET', url);
    if (status === 200) return body;
    if (status !== 409 || performance.now() > until)
      throw new StoryFailed(`${url} answered ${status}: ${body}`);
    await sleep(PROOF_WAIT.everyMs);
  }
}

async function download(url: string): Promise<string> {
  const { status, body } = await callLoopback('GET', url);
  if (status !== 200) throw new StoryFailed(`${url} answered ${status}: ${body}`);
  return body;
}

export async function verifyOffline(files: Story['files'], primitives: Primitives) {
  const { id, jws } = JSON.parse(await readFile(files.receipt, 'utf8'));
  const keys = fromJwkSet(JSON.parse(await readFile(files.keys, 'utf8'))) ?? [];
  const now = Math.floor(Date.now() / 1000);
  const log = { proof: await readFile(files.proof, 'utf8'), now };
  const facts = { jws: String(jws), receiptId: String(id), jobId: null, keys, job: null, log };
  return { verification: await verifyReceipt(facts, primitives), keys, jws: facts.jws };
}
