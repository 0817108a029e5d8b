// The policy check: the verdict that a decision and an execution would get, and what would be sent, free of charge.
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import {
  type JudgeDeps,
  judgeRequest,
  type ReadRequest,
  readRequest,
  type TargetRefused,
} from './judge-request.ts';

export type PolicyCheck = {
  readonly verdict:
    | { readonly allowed: true }
    | {
        readonly allowed: false;
        readonly refusal: TargetRefused;
      };
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
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
};

/** `payer`: whose quota is read; null if it is unknown who will pay. `place`: see `readRequest`. */
export async function checkPolicy(
  deps: JudgeDeps,
  request: WebhookRequest,
  payer: string | null,
  place = '',
): Promise<PolicyCheck | Refused<'invalid_request'>> {
  const read = readRequest(deps, request, place);
  if (isRefused(read)) return read;
  const refusal = await judgeRequest(deps, read.target, payer);
  const { target, headers, request: normal } = read;
  return {
    verdict: refusal === null ? { allowed: true } : { allowed: false, refusal },
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

function warningsOf({ headers, request }: ReadRequest): PolicyCheck['warnings'] {
  const warnings: { code: string; message: string }[] = [];
  if (request.idempotencyKey === null) {
    const message = 'Without an idempotencyKey a repeat of this request is a new execution.';
    warnings.push({ code: 'idempotency_key_missing', message });
  }
  if (headers.stripped.length > 0) {
    const message = 'Some headers will not be forwarded: strippedHeaders names them.';
    warnings.push({ code: 'headers_stripped', message });
  }
  if (request.retry.attempts > 1) {
    const message =
      'With retries the target may get the request more than once: it should honour Idempotency-Key.';
    warnings.push({ code: 'target_may_see_repeats', message });
  }
  return warnings;
}
