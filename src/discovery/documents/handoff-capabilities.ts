// What the browser handoff can express, and what it is not.

import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { HANDOFF_ACTIONS, HandoffAction, type HandoffRequest } from '#src/domain/planning/handoff.ts';
import { addressOf, heading } from './document-parts.ts';
import { browserHandoff } from './primitives.ts';

const { actions, textMaxLength, selectorMaxLength, validMs } = LIMITS.handoff;

const { type: types, description, text, selector } = HandoffAction.properties;

const told = ({
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
  instruction: 'Something to keep in mind or to do, in words.',
  navigate: 'Open the target.',
  click: 'Click an element.',
  type: 'Type a text into a field.',
  select: 'Choose an option.',
  submit: 'Submit the form.',
  wait_for_text: 'Wait until a text is shown.',
  screenshot: 'Take a picture of the page.',
  extract: 'Read something from the page.',
  verify: 'Check that something holds.',
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

export function handoffCapabilities(facts: Facts) {
  return {
    ...heading(facts),
    ...browserHandoff(),
    executionModel: 'handoff-only' as const,
    actionTypes: types.anyOf.map(({ const: type }) => ({
      type,
      description: MEANINGS[type],
      needs: HANDOFF_ACTIONS[type].map((choice) => [...choice]),
    })),
    actionFields: [
      { name: 'type', required: true, maxLength: null, description: 'One of actionTypes.' },
      { name: 'description', required: false, ...told(description) },
      { name: 'text', required: false, ...told(text) },
      { name: 'selector', required: false, ...told(selector) },
    ],
    limits: {
      minActions: actions.min,
      maxActions: actions.max,
      textMaxLength,
      selectorMaxLength,
      urlMaxLength: LIMITS.urlMaxLength,
      idempotencyKeyMaxLength: LIMITS.idempotencyKeyMaxLength,
      validMs,
      requestsPerMinute: facts.rateLimitPerMinute,
    },
    rules: RULES,
    examples: [{ title: 'Read the delivery date of an order', request: HANDOFF_EXAMPLE }],
    links: {
      handoff: addressOf(facts, ROUTES.handoff),
      secretsPolicy: addressOf(facts, ROUTES.secretsPolicy),
      openapi: addressOf(facts, ROUTES.openapi),
    },
  };
}

const RULES = [
  'A package is for one target: an action has no address of its own.',
  'The target is judged by the policy that executions go by; a refused one is answered with 200, allowed false and no package.',
  'needs lists what a type cannot do without: of each list one field at least.',
  'Unknown fields, types and empty texts are refused with 400 invalid_handoff_actions and the list of faults.',
  'returnUrl is an absolute HTTPS URL; it is judged as a target is, and never called; one that is refused is a 400 invalid_request.',
  'Nothing is executed, stored or charged here. Text of type actions may be a secret: send none that lives long.',
];
