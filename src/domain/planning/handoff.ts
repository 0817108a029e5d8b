// The browser handoff: the steps that a package for an external browser agent can contain, and the package. The target
// policy is checked elsewhere; this service executes no step.
import { type Static, Type } from '@sinclair/typebox';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { warningsIf } from '#src/domain/refusal.ts';
import { Closed, Instant, Nullable } from '#src/domain/schema-parts.ts';

export type HandoffMember = 'description' | 'text' | 'selector';

/** The members that each type of action requires: at least one of each list. */
export const HANDOFF_ACTIONS = {
  instruction: [['description', 'text']],
  navigate: [],
  click: [['selector', 'text', 'description']],
  type: [['text'], ['selector', 'description']],
  select: [['text'], ['selector', 'description']],
  submit: [],
  wait_for_text: [['text']],
  screenshot: [],
  extract: [['selector', 'description']],
  verify: [['description', 'text']],
} as const satisfies Readonly<Record<string, readonly (readonly HandoffMember[])[]>>;

const HANDOFF_TYPES = Object.keys(HANDOFF_ACTIONS) as (keyof typeof HANDOFF_ACTIONS)[];

const Text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.handoffTextLength.max, description }));

export const HandoffAction = Type.Object(
  {
    type: Type.Union(HANDOFF_TYPES.map((type) => Type.Literal(type))),
    description: Text('Instruction or note, as text.'),
    text: Text('Text to type, choose, find or wait for.'),
    selector: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LIMITS.handoffSelectorLength.max,
        description: 'Selector of the element on the page.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'One step on the target. The capabilities list the fields that each type requires.',
  },
);
export type HandoffAction = Static<typeof HandoffAction>;

export const HandoffActions = Type.Array(HandoffAction, {
  minItems: LIMITS.handoffActions.min,
  maxItems: LIMITS.handoffActions.max,
});

const { url, idempotencyKey } = WebhookRequest.properties;

export const HandoffRequest = Type.Object(
  {
    targetUrl: Type.String({ ...url, description: 'Absolute HTTPS URL that the steps are for.' }),
    actions: HandoffActions,
    returnUrl: Type.Optional(
      Type.String({ ...url, description: 'Absolute HTTPS URL that the browser agent opens at the end.' }),
    ),
    idempotencyKey,
  },
  { additionalProperties: false },
);
export type HandoffRequest = Static<typeof HandoffRequest>;

/** Returns the required members that actions lack, which the schema cannot express. `path`: JSON pointer into `actions`. */
export function missingMembers(given: readonly HandoffAction[]): { path: string; message: string }[] {
  return given.flatMap((action, index) =>
    needsOf(action)
      .filter((choice) => choice.every((member) => action[member] === undefined))
      .map((choice) => ({
        path: `/${index}`,
        message: `An action of type ${action.type} needs ${choice.join(' or ')}`,
      })),
  );
}

const needsOf = ({ type }: HandoffAction): readonly (readonly HandoffMember[])[] => HANDOFF_ACTIONS[type];

export const HandoffPackage = Closed({
  id: Type.String({ pattern: ID_PATTERN.handoff }),
  status: Type.Literal('ready_for_external_browser_agent'),
  executionModel: Type.Literal('handoff-only'),
  paid: Type.Literal(false),
  createdAt: Instant,
  expiresAt: Instant,
  target: Closed({
    // A browser needs the fragment, which is not sent to servers.
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
export type HandoffPackage = Static<typeof HandoffPackage>;

export function makePackage(
  facts: Pick<HandoffPackage, 'id' | 'createdAt' | 'expiresAt' | 'target' | 'returnUrl' | 'idempotencyKey'>,
  given: readonly HandoffAction[],
): HandoffPackage {
  const { id, ...rest } = facts;
  return {
    id,
    status: 'ready_for_external_browser_agent',
    executionModel: 'handoff-only',
    paid: false,
    ...rest,
    actions: given.map((action, index) => ({ step: index + 1, ...action })),
  };
}

export const handoffWarnings = (given: readonly HandoffAction[], idempotencyKey: string | null) =>
  warningsIf(
    [
      idempotencyKey === null,
      'idempotency_key_missing',
      'Without an idempotencyKey a browser agent cannot distinguish a repeat from a new task.',
    ],
    [
      given.some(({ type }) => type === 'type'),
      'typed_text_may_be_secret',
      'Text to be typed may be a secret. This service keeps no package, but every agent that receives it can read it.',
    ],
  );
