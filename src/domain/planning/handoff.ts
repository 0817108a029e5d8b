// The browser handoff: steps for a browser agent elsewhere, for one judged target. It says which steps can be told and
// what a package holds; whether the target may be called is the target policy's, carrying the steps out is nobody's here.
import { type Static, Type } from '@sinclair/typebox';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';

const { actions, textMaxLength, selectorMaxLength } = LIMITS.handoff;

export type HandoffMember = 'description' | 'text' | 'selector';

/** By type of action, what it cannot do without: of each list one member at least. */
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

const Text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: textMaxLength, description }));

export const HandoffAction = Type.Object(
  {
    type: Type.Union([
      Type.Literal('instruction'),
      Type.Literal('navigate'),
      Type.Literal('click'),
      Type.Literal('type'),
      Type.Literal('select'),
      Type.Literal('submit'),
      Type.Literal('wait_for_text'),
      Type.Literal('screenshot'),
      Type.Literal('extract'),
      Type.Literal('verify'),
    ]),
    description: Text('What to do, in words.'),
    text: Text('What to type, choose, find or wait for.'),
    selector: Type.Optional(
      Type.String({ minLength: 1, maxLength: selectorMaxLength, description: 'Where on the page.' }),
    ),
  },
  {
    additionalProperties: false,
    description: 'One step on the target. What a type needs is told by its capabilities.',
  },
);
export type HandoffAction = Static<typeof HandoffAction>;

export const HandoffActions = Type.Array(HandoffAction, { minItems: actions.min, maxItems: actions.max });

const { url, idempotencyKey } = WebhookRequest.properties;

export const HandoffRequest = Type.Object(
  {
    targetUrl: Type.String({ ...url, description: 'Absolute HTTPS URL that the steps are for.' }),
    actions: HandoffActions,
    returnUrl: Type.Optional(
      Type.String({ ...url, description: 'Absolute HTTPS URL where the browser agent is to go in the end.' }),
    ),
    idempotencyKey,
  },
  { additionalProperties: false },
);
export type HandoffRequest = Static<typeof HandoffRequest>;

/** What no schema of one shape can say: that an action has what its type needs. `path`: JSON pointer into `actions`. */
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

export type HandoffPackage = {
  readonly id: string;
  readonly status: 'ready_for_external_browser_agent';
  readonly executionModel: 'handoff-only';
  readonly paid: false;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly target: {
    /** Normalised, with its fragment: a browser needs that, though no server gets it. */
    readonly url: string;
    readonly origin: string;
    readonly hostname: string;
    readonly pathname: string;
  };
  readonly actions: readonly (HandoffAction & { readonly step: number })[];
  readonly returnUrl: string | null;
  readonly idempotencyKey: string | null;
};

export function makePackage(
  facts: Pick<HandoffPackage, 'id' | 'createdAt' | 'expiresAt' | 'target' | 'returnUrl' | 'idempotencyKey'>,
  given: readonly HandoffAction[],
): HandoffPackage {
  const { id, createdAt, expiresAt, target, returnUrl, idempotencyKey } = facts;
  return {
    id,
    status: 'ready_for_external_browser_agent',
    executionModel: 'handoff-only',
    paid: false,
    createdAt,
    expiresAt,
    target,
    actions: given.map((action, index) => ({ step: index + 1, ...action })),
    returnUrl,
    idempotencyKey,
  };
}

export function handoffWarnings(given: readonly HandoffAction[], idempotencyKey: string | null) {
  const warnings: { code: string; message: string }[] = [];
  if (idempotencyKey === null) {
    const message = 'Without an idempotencyKey a browser agent cannot tell a repeat from a new task.';
    warnings.push({ code: 'idempotency_key_missing', message });
  }
  if (given.some(({ type }) => type === 'type')) {
    const message =
      'Text to be typed may be a secret. This service keeps no package, but whoever you pass it to will read it.';
    warnings.push({ code: 'typed_text_may_be_secret', message });
  }
  return warnings;
}
