// A proxy in front of a facilitator. It injects faults as configured, and records every call and whether money moved.
import { type FrontAnswer, startRelayFront } from './relay-front.ts';

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

  const front = await startRelayFront(behind);
  front.rule(async ({ path, body }, forward) => {
    const kind = path.slice(1);
    if (kind !== 'verify' && kind !== 'settle') return forward();
    const call = await recorded(kind, body);
    try {
      const early = beforeActing(call);
      if (early !== undefined) return early;
      const forwarded = await forward();
      call.moved = kind === 'settle' && JSON.parse(forwarded.body).success === true;
      return afterActing(call, forwarded);
    } finally {
      call.ended = true;
    }
  });
  return {
    url: front.url,
    calls,
    callsOf,
    rule: (next) => {
      rule = next;
    },
    down: front.down,
    up: front.up,
  };
}

const reply = (status: number, body: string, type = 'application/json'): FrontAnswer => ({
  status,
  headers: { 'content-type': type },
  body,
});
const EARLY: Partial<Record<Fault, FrontAnswer | 'hang' | null>> = {
  hang: 'hang',
  refuse: null,
  http_500: reply(500, 'upstream connect error', 'text/plain'),
  json_500: reply(500, '{"error":"internal error","message":"signature value invalid"}'),
  not_json: reply(200, '<html>all is well</html>', 'text/plain'),
};

/** undefined: the facilitator acts. */
const beforeActing = ({ fault, nonce }: FacilitatorCall) =>
  fault === 'invented'
    ? reply(200, JSON.stringify({ success: true, network: 'eip155:8453', transaction: nonce }))
    : EARLY[fault];

function afterActing({ fault }: FacilitatorCall, answer: FrontAnswer): FrontAnswer | 'hang' | null {
  if (fault === 'hang_after') return 'hang';
  if (fault === 'cut') return null;
  if (fault === 'json_500_after') return reply(500, '{"error":"internal error"}');
  if (fault !== 'pending') return answer;
  const pending = { ...JSON.parse(answer.body), success: false, errorReason: 'settlement_pending' };
  return reply(200, JSON.stringify(pending));
}
