// What is known of an order's target before anything is signed: by its text, and by the relay's own free verdict.
import { Type } from '@sinclair/typebox';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { judgeHeaders } from '#src/domain/destination/headers.ts';
import { readTarget, type Target } from '#src/domain/destination/url.ts';
import { utf8 } from '#src/domain/encoding.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { PresentDeps } from './present.ts';
import { PurchaseError } from './purchase-error.ts';

/** Throws `OperatorError` for a request that every relay refuses: nothing is signed for it. `body`: as it is sent. */
export function checkedTarget({ url, headers: given = {} }: WebhookRequest, body: string): Target {
  const target = readTarget(url);
  if (isRefused(target)) throw new OperatorError(target.message);
  const headers = judgeHeaders(given);
  if (isRefused(headers)) throw new OperatorError(headers.message);
  const { max } = LIMITS.requestBodyBytes;
  if (utf8(body).length > max) throw new OperatorError(`The request is over ${max} bytes.`);
  return target;
}

const isRefusal = shapeCheck(
  Type.Object({
    allowed: Type.Literal(false),
    error: Type.Object({
      code: Type.String(),
      message: Type.String(),
      details: Type.Optional(Type.Unknown()),
    }),
  }),
);

/**
 * Throws `PurchaseError` if the relay refuses the target: a private address, a blocked host, a name without an address. Any
 * other answer leaves it to the purchase, which is not charged for a refusal.
 */
export async function demandAllowedTarget(
  { send }: Pick<PresentDeps, 'send'>,
  relay: string,
  request: WebhookRequest,
): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const asked = new Request(`${relay}/api/policy/check`, {
    method: 'POST',
    headers,
    body: JSON.stringify(request),
  });
  const verdict = await send(asked).then(
    async (answer) => (answer.status === 200 ? parsedJson(await answer.text()) : null),
    () => null,
  );
  if (!isRefusal(verdict)) return;
  const { code, message } = verdict.error;
  throw new PurchaseError({
    member: 'target',
    expected: 'a target that the relay calls',
    actual: `${code}: ${message}`,
  });
}
