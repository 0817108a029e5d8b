// The policy check: the verdict that a decision and an execution would get, and what would be sent, free of charge.
import { namesOtherType } from '#src/domain/destination/headers.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { type Allowed, isRefused, type Refused, type Warning, warningsIf } from '#src/domain/refusal.ts';
import {
  type JudgeDeps,
  judgeRequest,
  type ReadRequest,
  readRequest,
  type TargetRefused,
} from './judge-request.ts';

export type PolicyCheck = {
  readonly verdict: Allowed | TargetRefused;
  readonly target: { readonly protocol: 'https:'; readonly hostname: string; readonly port: number };
  readonly normalized: {
    readonly method: string;
    readonly retry: { readonly attempts: number; readonly backoffMs: number };
    readonly timeoutMs: number;
    readonly idempotencyKeyPresent: boolean;
    readonly forwardedHeaders: readonly string[];
    readonly strippedHeaders: readonly string[];
    readonly bodyPresent: boolean;
  };
  readonly warnings: readonly Warning[];
};

/** `payer`: whose quota is read; null if it is unknown who will pay. `place`: see `readRequest`. */
export async function checkPolicy(
  deps: JudgeDeps,
  request: WebhookRequest,
  payer: string | null,
  place = '',
): Promise<PolicyCheck | Refused<'invalid_request'>> {
  const read = readRequest(request, place);
  if (isRefused(read)) return read;
  const verdict = await judgeRequest(deps, read.target, payer);
  const { target, headers, request: normal } = read;
  return {
    verdict,
    target: { protocol: 'https:', hostname: target.hostname, port: target.port },
    normalized: {
      method: normal.method,
      retry: normal.retry,
      timeoutMs: normal.timeoutMs,
      idempotencyKeyPresent: normal.idempotencyKey !== null,
      forwardedHeaders: headers.forwarded.map(([name]) => name),
      strippedHeaders: headers.stripped,
      bodyPresent: normal.body !== undefined,
    },
    warnings: warningsOf(read),
  };
}

const warningsOf = ({ headers, request }: ReadRequest) =>
  warningsIf(
    [
      request.idempotencyKey === null,
      'idempotency_key_missing',
      'Without an idempotencyKey a repeat of this request is a new execution.',
    ],
    [
      headers.stripped.length > 0,
      'headers_stripped',
      'Some headers will not be forwarded: strippedHeaders names them.',
    ],
    [
      request.body !== undefined && namesOtherType(headers),
      'body_is_json',
      'The target receives the body as JSON, a text in quotes, whatever content-type the request names.',
    ],
    [
      request.retry.attempts > 1,
      'target_may_see_repeats',
      'With retries the target may get the request more than once: it should honour Idempotency-Key.',
    ],
  );
