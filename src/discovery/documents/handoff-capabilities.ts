// The capabilities of the browser handoff.
import { Type } from '@sinclair/typebox';
import { addressOf, type Document, heading, headingSchema, Text, Texts } from '#src/discovery/document.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { HANDOFF_ACTIONS, HandoffAction, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { Closed, Count, Link, Nullable } from '#src/domain/schema-parts.ts';
import { browserHandoff, surfaceSchema } from './free-surfaces.ts';

const { type: types, description, text, selector } = HandoffAction.properties;

const textField = ({
  maxLength,
  description,
}: {
  readonly maxLength?: number;
  readonly description?: string;
}) => ({
  maxLength: maxLength ?? null,
  description: description ?? '',
});

const MEANINGS: Readonly<Record<HandoffAction['type'], string>> = {
  instruction: 'An instruction or a note, as text.',
  navigate: 'Open the target.',
  click: 'Click an element.',
  type: 'Type a text into a field.',
  select: 'Choose an option.',
  submit: 'Submit the form.',
  wait_for_text: 'Wait until a text is shown.',
  screenshot: 'Take a picture of the page.',
  extract: 'Read something from the page.',
  verify: 'Check a condition on the page.',
};

export const HANDOFF_EXAMPLE: HandoffRequest = {
  targetUrl: 'https://example.com/orders',
  actions: [
    { type: 'navigate', description: 'Open the list of orders' },
    { type: 'click', selector: 'a[href="/orders/17"]', description: 'Open order 17' },
    { type: 'wait_for_text', text: 'Order 17' },
    { type: 'extract', description: 'The delivery date' },
    { type: 'verify', text: 'Paid' },
  ],
  returnUrl: 'https://example.com/done',
  idempotencyKey: 'handoff-17',
};

const HandoffCapabilities = Closed({
  ...headingSchema,
  ...surfaceSchema,
  safeUse: Text,
  executionModel: Type.Literal('handoff-only'),
  actionTypes: Type.Array(
    Closed({
      type: types,
      description: Text,
      needs: Type.Array(Texts, { description: 'At least one field of each list.' }),
    }),
  ),
  actionFields: Type.Array(
    Closed({ name: Text, required: Type.Boolean(), maxLength: Nullable(Count), description: Text }),
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
  examples: Type.Array(Closed({ title: Text, request: HandoffRequest })),
  links: Closed({ handoff: Link, secretsPolicy: Link, openapi: Link }),
});

export const handoffCapabilities: Document<typeof HandoffCapabilities> = {
  routes: [ROUTES.handoffCapabilities],
  answer: 'The capabilities.',
  schema: HandoffCapabilities,
  build: (facts) => ({
    ...heading(facts),
    ...browserHandoff(),
    executionModel: 'handoff-only',
    actionTypes: types.anyOf.map(({ const: type }) => ({
      type,
      description: MEANINGS[type],
      needs: HANDOFF_ACTIONS[type].map((choice) => [...choice]),
    })),
    actionFields: [
      { name: 'type', required: true, maxLength: null, description: 'One of actionTypes.' },
      { name: 'description', required: false, ...textField(description) },
      { name: 'text', required: false, ...textField(text) },
      { name: 'selector', required: false, ...textField(selector) },
    ],
    limits: {
      minActions: LIMITS.handoffActions.min,
      maxActions: LIMITS.handoffActions.max,
      textMaxLength: LIMITS.handoffTextLength.max,
      selectorMaxLength: LIMITS.handoffSelectorLength.max,
      urlMaxLength: LIMITS.urlLength.max,
      idempotencyKeyMaxLength: LIMITS.idempotencyKeyLength.max,
      validMs: LIMITS.handoffValidMs.max,
      requestsPerMinute: facts.rateLimitPerMinute,
    },
    rules: RULES,
    examples: [{ title: 'Read the delivery date of an order', request: HANDOFF_EXAMPLE }],
    links: {
      handoff: addressOf(facts, ROUTES.handoff),
      secretsPolicy: addressOf(facts, ROUTES.secretsPolicy),
      openapi: addressOf(facts, ROUTES.openapi),
    },
  }),
};

const RULES = [
  'A package is for one target: an action has no address of its own.',
  'The target is checked with the policy of executions; a refused target is answered with 200, allowed false and no package.',
  'needs lists the required fields of a type: at least one field of each list.',
  'Unknown fields, types and empty texts are refused with 400 invalid_handoff_actions and the list of errors.',
  'returnUrl is an absolute HTTPS URL; it is checked like a target and never called; a refused one is 400 invalid_request.',
  'Nothing is executed, stored or charged here. Text of type actions may be a secret: send no long-lived one.',
];
