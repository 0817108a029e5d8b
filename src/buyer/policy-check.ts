// The relay's own verdict on a target, free and before anything is signed.
import { Type } from '@sinclair/typebox';
import { parsedJson } from '#src/domain/canonical-json.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import type { PresentDeps } from './present.ts';
import { PurchaseError } from './purchase-error.ts';

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
