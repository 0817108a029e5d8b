// What a guided call sends: the decision that approved it, and the same action again.
import { type Static, Type } from '@sinclair/typebox';
import { strict } from '#src/domain/event-fields.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';

export const GuidedRequest = Type.Object(
  {
    decisionId: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Of a decision that recommends pay_and_execute.',
    }),
    action: WebhookRequest,
  },
  strict,
);
export type GuidedRequest = Static<typeof GuidedRequest>;
