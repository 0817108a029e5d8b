// A proxy in front of a facilitator. It injects faults as configured, and records every call and whether money moved.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { loopbackServer } from './loopback-server.ts';

/**
 * Before the facilitator acts: `http_500` (a text), `json_500`, `not_json` (200 with a text), `refuse` (connection
 * closed), `hang` (no answer until the caller gives up or the proxy ends), `invented` (a settlement that never happened, with
 * a hash). After it has acted: `cut` (connection closed), `hang_after`, `json_500_after`, `pending` (settlement_pending,
 * with the transaction).
 */
export type Fault =
  | 'pass'
  | 'http_500'
  | 'json_500'
  | 'not_json'
  | 'refuse'
  | 'hang'
  | 'invented'
  | 'cut'
  | 'hang_after'
  | 'json_500_after'
  | 'pending';

export type FacilitatorCall = {
  readonly kind: 'verify' | 'settle';
  /** Of the authorization, lower case. */
  readonly nonce: string;
  /** 1 for the first call of this kind for this nonce. */
  readonly nth: number;
  /** `pass` until the rule has returned. */
  fault: Fault;
  /** Whether the facilitator moved the money in this call. */
  moved: boolean;
  /** Nothing moves in this call any more. */
  ended: boolean;
};

/** May wait: the call is in `calls` already, and is answered when the rule has returned. */
export type FaultRule = (call: Pick<FacilitatorCall, 'kind' | 'nonce' | 'nth'>) => Fault | Promise<Fault>;

export type FaultProxy = {
  readonly url: string;
  /** From the next call on. */
  rule(rule: FaultRule): void;
  /** All calls with a payment, in order of arrival. */
  readonly calls: readonly FacilitatorCall[];
  callsOf(kind: FacilitatorCall['kind'], nonce: string): readonly FacilitatorCall[];
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
};

/** `behind`: URL of the facilitator. */
export async function startFaultProxy(behind: string): Promise<FaultProxy> {
  const calls: FacilitatorCall[] = [];
  let rule: FaultRule = () => 'pass';
  const callsOf: FaultProxy['callsOf'] = (kind, nonce) =>
    calls.filter((call) => call.kind === kind && call.nonce === nonce.toLowerCase());

  async function recorded(kind: FacilitatorCall['kind'], body: string): Promise<FacilitatorCall> {
    const { paymentPayload } = JSON.parse(body);
    const nonce = String(paymentPayload.payload.authorization.nonce).toLowerCase();
    const nth = callsOf(kind, nonce).length + 1;
    const call: FacilitatorCall = { kind, nonce, nth, fault: 'pass', moved: false, ended: false };
    calls.push(call);
    try {
      call.fault = await rule(call);
    } catch (error) {
      // The connection is closed, which the relay takes for a lost answer.
      console.error('the rule of the fault proxy failed:', error);
      throw error;
    }
    return call;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const kind = request.url?.slice(1);
    const body = await text(request);
    const call = kind === 'verify' || kind === 'settle' ? await recorded(kind, body) : null;
    try {
      await act(request, response, body, call);
    } finally {
      if (call !== null) call.ended = true;
    }
  }

  async function act(
    request: IncomingMessage,
    response: ServerResponse,
    body: string,
    call: FacilitatorCall | null,
  ): Promise<void> {
    const early = call === null ? null : beforeActing(call);
    if (early === 'hang') return;
    if (early === 'refuse') {
      response.destroy();
      return;
    }
    if (early !== null) {
      response.writeHead(...early.head).end(early.body);
      return;
    }
    const method = request.method ?? 'GET';
    // keepalive: false, since a kept-alive connection may be closing, which would be an unwanted fault.
    const options = { method, keepalive: false, ...(body === '' ? {} : { body }) };
    const forwarded = await fetch(`${behind}${request.url}`, options);
    const said = await forwarded.text();
    if (call !== null) call.moved = call.kind === 'settle' && JSON.parse(said).success === true;
    answer(response, call?.fault ?? 'pass', forwarded.status, said);
  }

  const { url, down, up } = await loopbackServer(handle);
  return {
    url,
    calls,
    callsOf,
    rule: (next) => {
      rule = next;
    },
    down,
    up,
  };
}

type Early = {
  readonly head: readonly [status: number, headers: Record<string, string>];
  readonly body: string;
};

function beforeActing({ fault, nonce }: FacilitatorCall): Early | 'hang' | 'refuse' | null {
  const plain = { 'content-type': 'text/plain' };
  const json = { 'content-type': 'application/json' };
  switch (fault) {
    case 'hang':
    case 'refuse':
      return fault;
    case 'http_500':
      return { head: [500, plain], body: 'upstream connect error' };
    case 'json_500':
      return { head: [500, json], body: '{"error":"internal error","message":"signature value invalid"}' };
    case 'not_json':
      return { head: [200, plain], body: '<html>all is well</html>' };
    case 'invented':
      return { head: [200, json], body: JSON.stringify({ ...INVENTED, transaction: nonce }) };
    default:
      return null;
  }
}

const INVENTED = { success: true, network: 'eip155:8453' };

function answer(response: ServerResponse, fault: Fault, status: number, said: string): void {
  const json = { 'content-type': 'application/json' };
  if (fault === 'hang_after') return;
  if (fault === 'cut') response.destroy();
  else if (fault === 'json_500_after') response.writeHead(500, json).end('{"error":"internal error"}');
  else if (fault === 'pending') {
    const pending = { ...JSON.parse(said), success: false, errorReason: 'settlement_pending' };
    response.writeHead(200, json).end(JSON.stringify(pending));
  } else response.writeHead(status, json).end(said);
}
