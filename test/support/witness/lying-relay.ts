// A relay of its own signing key that executes nothing: it answers as an honest relay would, and changes what a test
// specifies. It is a function of requests; `relayServer` puts it behind HTTP.
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { readTarget } from '#src/domain/destination/url.ts';
import { utf8 } from '#src/domain/encoding.ts';
import { makeId } from '#src/domain/ids.ts';
import { normaliseRequest, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { discloseRequest, discloseResponse } from '#src/usecases/execution/disclosures.ts';
import { forged } from '#test/support/given/given-receipt.ts';
import { hashWith, type TestKey, testKey } from '#test/support/given/primitives.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { succeeding } from '#test/support/world/fakes.ts';

export const PAY_TO = '0x1111111111111111111111111111111111111111';
export const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

/** JSON whose members a lie changes. */
export type Tree = { readonly [name: string]: unknown };

/** A copy with one member changed; undefined removes it. `path`: as in `payment.payer` or `attempts.0.outcome`. */
export function changed(tree: object, path: string, value: unknown): Tree {
  const copy = structuredClone(tree) as { [name: string]: unknown };
  const names = path.split('.');
  const last = names.pop() ?? '';
  const parent = names.reduce<{ [name: string]: unknown }>(
    (within, name) => within[name] as { [name: string]: unknown },
    copy,
  );
  if (JSON.stringify(parent[last]) === JSON.stringify(value)) throw new Error(`${path} is not changed`);
  parent[last] = value;
  return copy;
}

/** What an honest relay answers to a paid request, before it is sent. `header`: PAYMENT-RESPONSE, decoded; null: none. */
export type Draft = { readonly status: number; readonly header: Tree | null; readonly body: Tree };

export type Lies = {
  /** PAYMENT-REQUIRED, decoded. */
  readonly offer?: (required: Tree) => Tree | string;
  /** Of the receipt, before the relay signs it. */
  readonly payload?: (payload: ReceiptPayload) => object;
  readonly signer?: TestKey;
  /** What the relay executes, and opens truthfully. */
  readonly order?: (order: WebhookRequest) => WebhookRequest;
  readonly answer?: (draft: Draft) => Draft;
  /** Instead of everything else. */
  readonly respond?: (request: Request, honest: () => Promise<Response>) => Promise<Response>;
};

export type LyingRelay = {
  readonly origin: string;
  readonly key: TestKey;
  /** Payment headers, in the order of their presentation. */
  readonly presented: readonly string[];
  /** Answers to paid requests. */
  readonly answers: readonly Draft[];
  lie(lies: Lies): void;
  readonly send: (request: Request) => Promise<Response>;
};

type Stored = { readonly payload: ReceiptPayload; readonly disclosures: readonly string[] };

/** What the target answers, to a buyer that asks for it. */
export const ANSWERED = {
  headers: { 'content-type': 'text/plain' },
  encoding: 'utf8',
  body: 'the answer: ü',
  truncated: false,
} as const;

type Signed = { readonly authorization: Readonly<Record<string, string>>; readonly signature: string };
type Header = {
  readonly payload: Signed;
  readonly accepted: { readonly network: string; readonly asset: string };
};

/** `now`: Unix ms. `target`: the outcome of a call. */
export function lyingRelay(
  origin: string,
  now: () => number,
  outcome: (request: WebhookRequest) => number = () => 200,
): LyingRelay {
  const key = testKey();
  const checkpointKey = testKey({ purpose: 'checkpoint' });
  const presented: string[] = [];
  const answers: Draft[] = [];
  const byNonce = new Map<string, Stored>();
  const byKey = new Map<string, Stored>();
  let lies: Lies = {};

  async function honest({ url, headers }: Request, json: string): Promise<Response> {
    const { pathname } = new URL(url);
    if (pathname === '/.well-known/jwks.json')
      return Response.json({ keys: [toJwk(key.record), toJwk(checkpointKey.record)] });
    if (pathname !== '/api/execute/webhook') return new Response('no such page', { status: 404 });
    const payment = headers.get('PAYMENT-SIGNATURE');
    return payment === null
      ? unpaid()
      : paid(payment, json, headers.get('prefer') === 'return=representation');
  }

  function unpaid(): Response {
    const required = {
      x402Version: 2,
      error: 'payment_required',
      resource: {
        url: `${origin}/api/execute/webhook`,
        description: 'one call',
        mimeType: 'application/json',
      },
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:8453',
          amount: '3000',
          asset: USDC,
          payTo: PAY_TO,
          maxTimeoutSeconds: 120,
          extra: { name: 'USD Coin', version: '2', paymentFlow: 'upfront' },
        },
      ],
    };
    const header = base64(lies.offer === undefined ? required : lies.offer(required));
    return Response.json(
      { x402Version: 1, error: 'payment_required', accepts: [] },
      { status: 402, headers: { 'PAYMENT-REQUIRED': header } },
    );
  }

  async function paid(header: string, json: string, returnsResponse: boolean): Promise<Response> {
    const presentedNow: Header = JSON.parse(Buffer.from(header, 'base64').toString());
    const ordered: WebhookRequest = JSON.parse(json);
    const request = lies.order?.(ordered) ?? ordered;
    const { nonce = '', from } = presentedNow.payload.authorization;
    const named = `${from} ${request.idempotencyKey}`;
    const earlier = byNonce.get(nonce) ?? byKey.get(named);
    const made = earlier ?? execute(presentedNow, request, returnsResponse);
    byNonce.set(nonce, made);
    if (request.idempotencyKey !== undefined) byKey.set(named, made);
    const honestly = await answerOf(made, earlier !== undefined);
    const response = { response: { ...ANSWERED, status: made.payload.outcome.responseStatus } };
    const isReturned = returnsResponse && earlier === undefined;
    const answer = isReturned ? { ...honestly, body: { ...honestly.body, ...response } } : honestly;
    answers.push(structuredClone(answer));
    const { status, header: settled, body } = lies.answer?.(answer) ?? answer;
    const headers = settled === null ? {} : { 'PAYMENT-RESPONSE': base64(settled) };
    return Response.json(body, { status, headers });
  }

  function execute(
    { payload: signed, accepted }: Header,
    request: WebhookRequest,
    returnsResponse: boolean,
  ): Stored {
    const [jobId, receiptId] = [makeId('job', randomBytes(16)), makeId('rcpt', randomBytes(16))];
    const target = readTarget(request.url);
    if (isRefused(target)) throw new Error(target.message);
    const normal = normaliseRequest(request, target.href);
    const body = normal.body === undefined ? null : utf8(JSON.stringify(normal.body));
    const opened = discloseRequest({ keyedHash: hashWith('lying') }, jobId, normal, target, body);
    const bytes = Buffer.from(ANSWERED.body);
    const read = {
      responseBytes: bytes.length,
      responseBodySha256: createHash('sha256').update(bytes).digest('hex'),
    };
    const unread = { responseBytes: null, responseBodySha256: null };
    const report = { ...succeeding(returnsResponse ? read : unread), truncated: false };
    const answered = discloseResponse({ keyedHash: hashWith('lying') }, jobId, report);
    const { responseBytes, responseCommitment } = answered.facts;
    const status = outcome(request);
    const failed = status < 200 || status > 299;
    const at = new Date(now()).toISOString();
    const result = failed ? 'failed' : 'succeeded';
    const errorCategory = failed ? 'target_server_error' : null;
    const { from = '', value = '', to = '' } = signed.authorization;
    const payload: ReceiptPayload = {
      v: 1,
      receiptId,
      jobId,
      decisionId: null,
      decisionHash: null,
      iat: Math.floor(now() / 1000),
      mode: 'x402',
      payment: {
        scheme: 'exact',
        network: accepted.network,
        asset: accepted.asset.toLowerCase(),
        amount: value,
        payTo: to.toLowerCase(),
        payer: from.toLowerCase(),
        transaction: `0x${randomBytes(32).toString('hex')}`,
        payloadHash: hashOf(signed),
      },
      request: {
        method: normal.method,
        _sd: Object.values(opened.commitments).filter((one) => one !== null),
      },
      attempts: [
        {
          n: 1,
          startedAt: at,
          endedAt: at,
          phase: 'body',
          sent: 'yes',
          outcome: result,
          status,
          errorCategory,
          tlsVersion: 'TLSv1.3',
          _sd: [],
        },
      ],
      outcome: {
        status: result,
        responseStatus: status,
        errorCategory,
        responseBytes,
        truncated: false,
        _sd: responseCommitment === null ? [] : [responseCommitment],
      },
      stream: { id: `job-${jobId}`, revision: '2', chain: 'A'.repeat(43) },
    };
    const disclosures = [...opened.disclosures, ...answered.disclosures];
    return { payload, disclosures: disclosures.map((one) => one.text) };
  }

  async function answerOf({ payload: made, disclosures }: Stored, replay: boolean): Promise<Draft> {
    const payload = (lies.payload?.(made) ?? made) as ReceiptPayload;
    const signer = lies.signer ?? key;
    const jws = await forged({ alg: 'EdDSA', kid: signer.keyId, typ: 'relay-receipt+jws' }, payload, signer);
    const { jobId, receiptId, payment, outcome: result, attempts, mode, decisionId } = payload;
    const { status, responseStatus, errorCategory } = result;
    const { network, asset, amount, payTo, payer, transaction } = payment ?? {};
    return {
      status: status === 'succeeded' ? 200 : 502,
      header: { success: true, transaction: transaction ?? '', network, payer, amount },
      body: {
        mode,
        idempotentReplay: replay,
        job: { id: jobId, status, attempts: attempts.length, decisionId, responseStatus, errorCategory },
        receipt: {
          id: receiptId,
          signature: `ed25519:${jws.split('.')[2]}`,
          replay,
          jws,
          keyId: signer.keyId,
        },
        payment: payment && { network, asset, amount, payTo, payer, transaction },
        disclosures: [...disclosures],
        checkpoint: null,
        links: { job: `${origin}/api/jobs/${jobId}`, receipt: `${origin}/api/receipts/${receiptId}` },
      },
    };
  }

  return {
    origin,
    key,
    presented,
    answers,
    lie: (next) => {
      lies = next;
    },
    async send(request) {
      const payment = request.headers.get('PAYMENT-SIGNATURE');
      if (payment !== null) presented.push(payment);
      const json = await request.text();
      const answer = () => honest(request, json);
      return lies.respond === undefined ? answer() : lies.respond(request, answer);
    },
  };
}

const base64 = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.from(JSON.stringify(value)).toString('base64');

/** SHA-256 of the canonical JSON, written here apart from the source. */
export function hashOf({ authorization: a, signature }: Signed): string {
  const quoted = (text = '') => JSON.stringify(text.toLowerCase());
  const members = ['from', 'nonce', 'to', 'validAfter', 'validBefore', 'value'];
  const inner = members.map((name) => `"${name}":${quoted(a[name])}`).join(',');
  return createHash('sha256')
    .update(`{"authorization":{${inner}},"signature":${quoted(signature)}}`)
    .digest('hex');
}

/** The relay behind HTTP on loopback. */
export async function relayServer(
  make: (origin: string) => LyingRelay,
): Promise<LyingRelay & { close(): Promise<void> }> {
  const server = await loopbackServer(answer);
  const relay = make(server.url);
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = incoming;
    const body = await text(incoming);
    const address = `${relay.origin}${url}`;
    const request = body === '' ? new Request(address, { method }) : new Request(address, { method, body });
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, String(value));
    const answered = await relay.send(request);
    response.writeHead(answered.status, Object.fromEntries(answered.headers)).end(await answered.text());
  }
  return { ...relay, close: server.down };
}
