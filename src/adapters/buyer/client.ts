// The buyer's side of one paid call: sign the authorization that was judged, and present it, always the same one, until
// the relay has a final answer. A second payment is never made: it would pay twice for one call.
import { x402Client, x402HTTPClient } from '@x402/core/client';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { privateKeyToAccount } from 'viem/accounts';
import type { Clock } from '../../ports/clock.ts';
import type { Bill, ReadHeader } from './offer.ts';

export type Answer = { readonly status: number; readonly header: ReadHeader; readonly body: string };
/** One HTTP request, without following redirects; rejects where no whole answer came. */
export type Send = (
  method: string,
  url: string,
  body?: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** The header that carries a payment: it pays once, and whoever presents it again gets what it bought. */
export type PaymentHeader = {
  readonly name: string;
  readonly value: string;
  /** Lower case. */
  readonly payer: string;
};

/** The wallet's address, with its checksum. */
export const addressOf = (privateKey: `0x${string}`): `0x${string}` =>
  privateKeyToAccount(privateKey).address;

/** Signs an EIP-3009 authorization of exactly these terms; moves nothing. `privateKey`: 0x and 64 hex digits. */
export async function signPayment(
  privateKey: `0x${string}`,
  bill: Bill,
  accepted: PaymentRequirements,
): Promise<PaymentHeader> {
  const account = privateKeyToAccount(privateKey);
  const schemes = [{ network: accepted.network, client: new ExactEvmScheme(account) }];
  const client = new x402HTTPClient(x402Client.fromConfig({ schemes }));
  const payload = await client.createPaymentPayload({ ...bill.carried, accepts: [accepted] });
  const [header] = Object.entries(client.encodePaymentSignatureHeader(payload));
  if (header === undefined) throw new Error('the x402 client made no payment header');
  const [name, value] = header;
  return { name, value, payer: account.address.toLowerCase() };
}

export type Presented =
  /** The relay's own answer to the execution: delivered, or tried and failed. */
  | {
      readonly kind: 'executed';
      readonly answer: Answer;
      readonly execution: Readonly<Record<string, unknown>>;
    }
  /** A final no: nothing was sent to the target. */
  | { readonly kind: 'refused'; readonly answer: Answer; readonly code: string; readonly message: string }
  /** Patience has ended without one: the same header may still be presented. `last`: of the latest try. */
  | { readonly kind: 'unfinished'; readonly last: string };

export type PresentDeps = {
  readonly send: Send;
  readonly clock: Clock;
  /** Told of each wait. */
  readonly waiting: (why: string, ms: number) => void;
};

/** How long a payment is presented again and again. */
export const PATIENCE_MS = 120_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/** POSTs `body` (JSON) with the payment, waits as the relay asks, and repeats with the same header. */
export async function present(
  { send, clock, waiting }: PresentDeps,
  url: string,
  body: string,
  payment: Pick<PaymentHeader, 'name' | 'value'>,
): Promise<Presented> {
  const until = clock.monotonic() + PATIENCE_MS;
  const headers = { 'content-type': 'application/json', [payment.name]: payment.value };
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const answer = await send('POST', url, body, headers).catch(() => null);
    const final = answer === null ? null : finalAnswer(answer);
    if (final !== null) return final;
    const why =
      answer === null ? 'no answer' : [answer.status, errorOf(answer)?.code].filter(Boolean).join(' ');
    const wait = retryAfterMs(answer) ?? pause;
    if (clock.monotonic() + wait > until) return { kind: 'unfinished', last: why };
    waiting(why, wait);
    await clock.sleep(wait);
  }
}

/** null: the same header may still bring what it paid for. Only the relay's own words are a final no. */
function finalAnswer(answer: Answer): Presented | null {
  const { status } = answer;
  const execution = jsonObject(answer.body);
  if (
    (status === 200 || status === 502) &&
    execution !== null &&
    'job' in execution &&
    'receipt' in execution
  )
    return { kind: 'executed', answer, execution };
  if (status >= 300 && status < 400)
    return { kind: 'unfinished', last: `${status}, and no redirect is followed` };
  const error = errorOf(answer);
  // 508: the relay called itself, and always will.
  const final = status === 508 || (status >= 400 && status < 500 && !PASSING.has(status));
  if (error === null || !final || error.code === 'idempotency_in_progress') return null;
  return { kind: 'refused', answer, ...error };
}

/** Too slow, too many: never charged, and over soon. */
const PASSING: ReadonlySet<number> = new Set([408, 429]);

/** Of our error body, or of a 402 (whose `error` is a text); null where nobody of ours speaks. */
function errorOf({ status, body }: Answer): { readonly code: string; readonly message: string } | null {
  const error = jsonObject(body)?.error;
  if (typeof error === 'string') return status === 402 ? { code: 'payment_required', message: error } : null;
  const { code, message } = (error ?? {}) as Record<string, unknown>;
  return typeof code === 'string' ? { code, message: String(message ?? '') } : null;
}

function retryAfterMs(answer: Answer | null): number | null {
  const text = answer?.header('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Math.min(Number(text) * 1000, LONGEST_RETRY_AFTER_MS) : null;
}

function jsonObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
