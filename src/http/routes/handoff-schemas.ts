// Shapes of the browser handoff's answers.
import { Type } from '@sinclair/typebox';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { HandoffAction, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { endpoint, heading, Texts } from './document-schemas.ts';
import { PolicyShown, Verdict, Warnings } from './policy.ts';
import { Closed, Count, Instant, Link, Nullable } from './schema-parts.ts';

const HandoffPackage = Closed({
  id: Type.String({ pattern: ID_PATTERN.handoff }),
  status: Type.Literal('ready_for_external_browser_agent'),
  executionModel: Type.Literal('handoff-only'),
  paid: Type.Literal(false),
  createdAt: Instant,
  expiresAt: Instant,
  target: Closed({
    url: Type.String({ description: 'Normalised, with its fragment.' }),
    origin: Type.String(),
    hostname: Type.String(),
    pathname: Type.String(),
  }),
  actions: Type.Array(
    Closed({ step: Type.Integer({ minimum: 1 }), ...HandoffAction.properties }, 'In the order of the steps.'),
  ),
  returnUrl: Nullable(Type.String()),
  idempotencyKey: Nullable(Type.String()),
});

export const HandoffResponse = Closed({
  ...Verdict,
  handoff: Nullable(HandoffPackage),
  policy: PolicyShown,
  warnings: Warnings,
  next: Closed({ capabilities: Link, secretsPolicy: Link, decide: Link }),
});

/** What the catalog says of a free surface, too. */
export const surface = {
  id: Type.String(),
  status: Type.String(),
  category: Type.String(),
  title: Type.String(),
  description: Type.String(),
  endpoint: Closed(endpoint),
};

export const HandoffCapabilities = Closed({
  ...heading,
  ...surface,
  safeUse: Type.String(),
  executionModel: Type.Literal('handoff-only'),
  actionTypes: Type.Array(
    Closed({
      type: HandoffAction.properties.type,
      description: Type.String(),
      needs: Type.Array(Texts, { description: 'Of each list one field at least.' }),
    }),
  ),
  actionFields: Type.Array(
    Closed({
      name: Type.String(),
      required: Type.Boolean(),
      maxLength: Nullable(Count),
      description: Type.String(),
    }),
  ),
  limits: Closed({
    minActions: Count,
    maxActions: Count,
    textMaxLength: Count,
    selectorMaxLength: Count,
    urlMaxLength: Count,
    idempotencyKeyMaxLength: Count,
    validMs: Count,
    requestsPerMinute: Count,
  }),
  rules: Texts,
  examples: Type.Array(Closed({ title: Type.String(), request: HandoffRequest })),
  links: Closed({ handoff: Link, secretsPolicy: Link, openapi: Link }),
});
