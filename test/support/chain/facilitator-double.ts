// A scripted facilitator on loopback: money moves once per nonce, and any call may fail as scripted.
import type * as http from 'node:http';
import { text } from 'node:stream/consumers';
import { PaymentPayloadV2Schema } from '@x402/core/schemas';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { type Guard, refusalOf } from './facilitator-login.ts';
import type { MemoryChain } from './memory-chain.ts';
import { nonceUsed } from './memory-payments.ts';
import { chainOfNow } from './scripted-node.ts';

export type FacilitatorCall = {
  readonly nonce: string;
  readonly payer: string;
  readonly network: string;
  readonly validBefore: string;
  readonly payTo: string;
  readonly amount: string;
  /** The parsed request. */
  readonly body: unknown;
};

export type Reply = {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** `never`: the call hangs. `cut`: the connection is closed without an answer. */
export type Outcome = Reply | 'never' | 'cut';

/** `move`: lets the money move, as a settle that worked does; gives the transaction. */
export type Behaviour = (call: FacilitatorCall, move: () => string) => Outcome;

export type FacilitatorDouble = AsyncDisposable & {
  readonly url: string;
  readonly calls: { verify: number; settle: number; supported: number };
  /** On which the money moves. */
  readonly chain: MemoryChain;
  /** Nonces whose money has moved, with their transaction. */
  readonly ledger: ReadonlyMap<string, string>;
  /** The last request to verify or settle. */
  lastCall(): FacilitatorCall | null;
  /** Each answers one call, in order; then the ledger answers again. */
  scriptVerify(...behaviours: readonly Behaviour[]): void;
  scriptSettle(...behaviours: readonly Behaviour[]): void;
  scriptSupported(...behaviours: readonly Behaviour[]): void;
  close(): Promise<void>;
};

const NONCE_USED = nonceUsed.cause;

export const json = (value: unknown, status = 200): Reply => ({
  status,
  body: JSON.stringify(value),
  headers: { 'content-type': 'application/json' },
});

export const verified = ({ payer }: FacilitatorCall): Reply => json({ isValid: true, payer });
export const invalid =
  (invalidReason: string, status = 200): Behaviour =>
  ({ payer }) =>
    json({ isValid: false, invalidReason, payer }, status);
/** `success: false`, with nothing moved. */
export const unsettled =
  (errorReason: string | undefined, status = 200): Behaviour =>
  ({ payer, network }) =>
    json({ success: false, errorReason, transaction: '', network, payer }, status);
export const settled = ({ payer, network }: FacilitatorCall, transaction: string): Reply =>
  json({ success: true, transaction, network, payer });

/** Faults for every operation. */
export const faults = {
  html500: () => ({ status: 500, body: '<h1>Internal Server Error</h1>' }),
  html200: () => ({ status: 200, body: '<h1>Welcome</h1>', headers: { 'content-type': 'text/html' } }),
  notJson200: () => ({ status: 200, body: 'ok', headers: { 'content-type': 'application/json' } }),
  empty200: () => ({ status: 200, body: '' }),
  jsonError500: () => json({ error: 'the database is gone' }, 500),
  tooMany: () => json({ error: 'slow down' }, 429),
  never: () => 'never',
  cut: () => 'cut',
} as const satisfies Readonly<Record<string, Behaviour>>;

const failed = ({ payer, network }: FacilitatorCall, errorReason: string) => ({
  success: false,
  errorReason,
  transaction: '',
  network,
  payer,
});

type Operation = 'verify' | 'settle' | 'supported';

/** `guard`: refuses requests with 401. Its operations are the last part of any path. */
export async function facilitatorDouble(
  networks = ['eip155:8453'],
  guard?: Guard,
): Promise<FacilitatorDouble> {
  const calls = { verify: 0, settle: 0, supported: 0 };
  const chain = chainOfNow();
  const used = (call: FacilitatorCall) => chain.endOf({ payer: call.payer.toLowerCase(), nonce: call.nonce });
  const scripts: Record<Operation, Behaviour[]> = { verify: [], settle: [], supported: [] };
  let last: FacilitatorCall | null = null;

  const move = (call: FacilitatorCall) => chain.payAtOnce({ ...call, payer: call.payer.toLowerCase() });
  const usual: Record<Operation, Behaviour> = {
    supported: () =>
      json({
        kinds: networks.map((network) => ({ x402Version: 2, scheme: 'exact', network })),
        extensions: [],
      }),
    verify: (call, _move) => (used(call) ? invalid(NONCE_USED)(call, _move) : verified(call)),
    settle: (call, doMove) => (used(call) ? json(failed(call, NONCE_USED)) : settled(call, doMove())),
  };

  async function respond(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const operation = (request.url ?? '').split('/').at(-1) as Operation;
    if (!(operation in calls)) return send(response, { status: 404, body: 'no such operation' });
    calls[operation]++;
    const reason = (await guard?.check(request)) ?? null;
    if (reason !== null) return send(response, { status: 401, body: refusalOf(reason, request) });
    const call = callOf(await text(request));
    if (operation !== 'supported') {
      last = call;
      if (call.nonce === '') return send(response, json({ error: 'no version 2 payment' }, 400));
    }
    const behaviour = scripts[operation].shift() ?? usual[operation];
    const outcome = behaviour(call, () => move(call));
    if (outcome === 'cut') request.socket.destroy();
    else if (outcome !== 'never') send(response, outcome);
  }

  const server = await loopbackServer(respond);
  return {
    url: server.url,
    calls,
    chain,
    get ledger() {
      return chain.ledger;
    },
    lastCall: () => last,
    scriptVerify: (...more) => void scripts.verify.push(...more),
    scriptSettle: (...more) => void scripts.settle.push(...more),
    scriptSupported: (...more) => void scripts.supported.push(...more),
    close: server.down,
    [Symbol.asyncDispose]: server.down,
  };
}

function send(response: http.ServerResponse, { status, body, headers = {} }: Reply): void {
  response.writeHead(status, headers);
  response.end(body);
}

function callOf(text: string): FacilitatorCall {
  const body: unknown = text === '' ? null : JSON.parse(text);
  const payment = PaymentPayloadV2Schema.safeParse(
    (body as { paymentPayload?: unknown } | null)?.paymentPayload,
  );
  const { accepted, payload } = payment.data ?? { accepted: { network: '' }, payload: { authorization: {} } };
  const {
    from = '',
    to = '',
    value = '0',
    nonce = '',
    validBefore = '',
  } = payload.authorization as Record<string, string>;
  return { nonce, payer: from, network: accepted.network, validBefore, payTo: to, amount: value, body };
}
