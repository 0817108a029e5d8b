// Presents one payment until the relay gives a final answer. Only the payment in hand is ever presented, to the address that
// was named and to no other.
import { parsedJson } from '#src/domain/canonical-json.ts';
import { collected } from '#src/lib/collected.ts';
import { isObject } from '#src/lib/is-object.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { PurchaseProblem } from './purchase-error.ts';

/** One HTTP request and its complete answer; rejects if none came. Redirects are not followed. */
export type Send = (request: Request) => Promise<Response>;

/** The answer exceeds a limit. The message is for a person. */
class AnswerRefused extends Error {}

/** `timeoutMs`: longer than the longest execution. */
const LIMITS = { timeoutMs: 130_000, maxBytes: 4 * 1024 * 1024 };

export const limitedSend =
  ({ timeoutMs, maxBytes } = LIMITS): Send =>
  async (request) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const { status, headers, body } = await fetch(request, { redirect: 'manual', signal });
      const bytes = await collected((body ?? []) as AsyncIterable<Uint8Array>, maxBytes);
      if (bytes === null) throw new AnswerRefused(`an answer of more than ${maxBytes} bytes`);
      return new Response(bytes.length === 0 ? null : bytes, { status, headers });
    } catch (cause) {
      if (!signal.aborted) throw cause;
      throw new AnswerRefused(`no complete answer within ${timeoutMs / 1000} s`, { cause });
    }
  };

/** The answer to a request that orders nothing. Throws `OperatorError` if none came. */
export const reached = (send: Send, request: Request): Promise<Response> =>
  send(request).catch((cause: unknown) => {
    throw new OperatorError(`${new URL(request.url).origin} cannot be reached`, { cause });
  });

export type PresentDeps = {
  readonly send: Send;
  readonly clock: Clock;
  /** Called before each wait. */
  readonly waiting: (why: string, ms: number) => void;
};

export type Answer = { readonly status: number; readonly headers: Headers; readonly body: string };

export type Presented =
  /** A result, as `isResult` knows it. */
  | { readonly kind: 'executed'; readonly answer: Answer }
  /** A final refusal: nothing was sent to the target. `actual`: status and code. */
  | { readonly kind: 'refused'; readonly problem: PurchaseProblem; readonly actual: string }
  /** No final answer in time: the same header may be presented again. `last`: the latest result. */
  | { readonly kind: 'unfinished'; readonly last: string };

/** How long a payment is presented repeatedly. */
export const PRESENT_MS = 120_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/** An execution response: delivered, or attempted and failed. */
const isExecution = ({ status, body }: Answer): boolean => {
  const members = jsonObject(body);
  return (status === 200 || status === 502) && 'job' in members && 'receipt' in members;
};

/** POSTs `body` (JSON) with the payment, if there is one, and `more` headers, waits as the relay asks, and repeats with the same header. */
export async function present(
  { send, clock, waiting }: PresentDeps,
  url: string,
  body: string,
  payment: { readonly name: string; readonly value: string } | null,
  isResult: (answer: Answer) => boolean = isExecution,
  more: Readonly<Record<string, string>> = {},
): Promise<Presented> {
  const until = clock.monotonic() + PRESENT_MS;
  const headers = {
    'content-type': 'application/json',
    ...more,
    ...(payment && { [payment.name]: payment.value }),
  };
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const answer = await completeAnswer(send, new Request(url, { method: 'POST', headers, body }));
    const final = typeof answer === 'string' ? null : finalAnswer(answer, isResult);
    if (final !== null) return final;
    const why = typeof answer === 'string' ? answer : describe(answer);
    const wait = (typeof answer === 'string' ? null : retryAfterMs(answer)) ?? pause;
    if (clock.monotonic() + wait > until) return { kind: 'unfinished', last: why };
    waiting(why, wait);
    await clock.sleep(wait);
  }
}

/** A text if there was no complete answer: why. */
async function completeAnswer(send: Send, request: Request): Promise<Answer | string> {
  try {
    const response = await send(request);
    return { status: response.status, headers: response.headers, body: await response.text() };
  } catch (cause) {
    if (cause instanceof OperatorError) throw cause;
    return cause instanceof AnswerRefused ? cause.message : 'no answer';
  }
}

/** null: presenting the same header again may still bring the result. Only the relay's own error is a final refusal. */
function finalAnswer(answer: Answer, isResult: (answer: Answer) => boolean): Presented | null {
  const { status } = answer;
  if (isResult(answer)) return { kind: 'executed', answer };
  if (status >= 300 && status < 400)
    return { kind: 'unfinished', last: `${status}, and redirects are not followed` };
  const error = errorOf(answer);
  // 508: the relay would call itself; a repeat cannot succeed.
  const final = status === 508 || (status >= 400 && status < 500 && !TEMPORARY.has(status));
  if (error === null || !final || error.code === 'idempotency_in_progress') return null;
  return { kind: 'refused', problem: error, actual: `${status} ${error.code}: ${error.message}` };
}

/** Request timeout, too many requests: not charged, and temporary. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429]);

/** Status and error code, of an answer that is no result. */
export function describe(answer: Answer): string {
  const { status, headers } = answer;
  const type = headers.get('content-type')?.split(';', 1)[0] ?? 'none';
  return `${status} ${errorOf(answer)?.code ?? `of type ${type}`}`;
}

/** From the relay's error body, or from a 402 (whose `error` is a text); null if the body is not the relay's. */
function errorOf({ status, body }: Answer): PurchaseProblem | null {
  const { error } = jsonObject(body);
  // The text of a 402 begins with its code if it has a reason.
  if (status === 402)
    return { code: UNPAID, message: typeof error === 'string' ? error.replace(`${UNPAID}: `, '') : UNPAID };
  const { code, message } = (error ?? {}) as Record<string, unknown>;
  return typeof code === 'string' ? { code, message: String(message ?? '') } : null;
}

const UNPAID = 'payment_required';

function retryAfterMs({ headers }: Answer): number | null {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Math.min(Number(text) * 1000, LONGEST_RETRY_AFTER_MS) : null;
}

/** Empty if the text is no JSON object. */
function jsonObject(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text);
  return isObject(value) ? value : {};
}
