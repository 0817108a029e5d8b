// Shapes of the documents that tell rules: pricing, capabilities, secrets policy.
import { Type } from '@sinclair/typebox';
import { ErrorCategory, Method, Mode } from '#src/domain/event-fields.ts';
import { endpoint, heading, Path, paymentTerms, Texts } from './document-schemas.ts';
import { Closed, Count, HttpStatus, Link, Nullable } from './schema-parts.ts';

/** x402 version 2. */
const Requirement = Closed({
  scheme: Type.String(),
  network: Type.String(),
  amount: Type.String({ pattern: '^\\d+$', description: 'Atomic units of `asset`.' }),
  asset: Type.String(),
  payTo: Type.String(),
  maxTimeoutSeconds: Type.Integer(),
  extra: Type.Optional(Type.Unknown()),
});

export const PricingDocument = Closed({
  ...heading,
  purpose: Type.String(),
  summary: Type.String(),
  payment: Closed({
    ...paymentTerms,
    protocol: Type.Literal('x402'),
    versions: Type.Array(Type.Integer()),
    currency: Type.Literal('USD'),
    amount: Type.String({ description: 'The price as a decimal.' }),
    unit: Type.Literal('call'),
  }),
  paidRoutes: Type.Array(
    Closed({
      actionId: Type.String(),
      method: Type.String(),
      path: Path,
      price: Type.String(),
      resource: Link,
      accepts: Nullable(
        Type.Array(Requirement, { description: 'What the 402 asks for; null where nobody is charged.' }),
      ),
    }),
  ),
  freeRoutes: Type.Array(Closed({ method: Type.String(), path: Path, summary: Type.String() })),
  rules: Texts,
  charges: Type.Array(
    Closed({
      statuses: Type.Array(HttpStatus),
      codes: Type.Array(Type.String(), {
        description: 'Of error.code; empty: every answer of these statuses.',
      }),
      charged: Type.Union([Type.Literal('once'), Type.Literal('never'), Type.Literal('at_most_once')]),
      meaning: Type.String(),
      next: Type.String(),
    }),
  ),
  howToPay: Texts,
  buyerChecks: Texts,
});

const Window = Closed({ windowMs: Count, maxRequests: Count });

export const CapabilitiesDocument = Closed({
  ...heading,
  mode: Mode,
  payment: Closed(paymentTerms),
  does: Texts,
  doesNot: Texts,
  execution: Closed({
    methods: Type.Array(Method),
    scheme: Type.Literal('https'),
    redirectsFollowed: Type.Boolean(),
    responseBodyReturned: Type.Boolean(),
    strippedHeaders: Texts,
    rules: Texts,
  }),
  retries: Closed({
    retriedStatuses: Type.Array(HttpStatus),
    retriedErrorCategories: Type.Array(ErrorCategory),
    rules: Texts,
  }),
  targetPolicy: Closed({
    mode: Type.String(),
    preset: Type.String(),
    quota: Nullable(Window),
    rules: Texts,
  }),
  idempotency: Closed({ keyFreesAfterMs: Count, rules: Texts }),
  decisions: Closed({ validForMs: Count, rules: Texts }),
  receipts: Closed({
    format: Type.String(),
    algorithm: Type.String(),
    keys: Link,
    did: Link,
    rules: Texts,
  }),
  transparencyLog: Closed({
    format: Type.String(),
    mmdSeconds: Count,
    checkpointMs: Count,
    witnessing: Type.Literal('unwitnessed', { description: 'No witness cosigns checkpoints.' }),
    checkpoint: Link,
    key: Link,
    tiles: Link,
    proof: Link,
    consistency: Link,
    rules: Texts,
  }),
  retention: Closed({ jobsDays: Count, receiptsDays: Count, decisionsDays: Count, rules: Texts }),
  limits: Type.Array(
    Closed({
      name: Type.String(),
      unit: Type.String(),
      min: Nullable(Count),
      max: Count,
      default: Nullable(Count),
      meaning: Type.String(),
      beyond: Type.String({ description: 'What happens beyond it.' }),
    }),
  ),
  surfaces: Type.Array(Closed({ ...endpoint, summary: Type.String() })),
});

export const SecretsPolicyDocument = Closed({
  ...heading,
  id: Type.Literal('secrets.policy'),
  status: Type.Literal('policy-only'),
  endpoint: Closed(endpoint),
  summary: Type.String(),
  send: Type.Array(Closed({ what: Type.String(), how: Type.String() })),
  neverSend: Texts,
  stored: Texts,
  notStored: Texts,
  shownTo: Type.Array(Closed({ who: Type.String(), sees: Type.String() })),
  callerDuties: Texts,
  keys: Link,
});
