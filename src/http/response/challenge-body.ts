// The body of a 402 as the interface description shows it: the challenge of x402 version 1, the one answer that has
// not the error body. The payment protocol makes it; conformance tests hold it against this.
import { Type } from '@sinclair/typebox';
import { Closed } from '#src/domain/schema-parts.ts';

const Requirement = Closed({
  scheme: Type.String(),
  network: Type.String({ description: 'As version 1 spells it, such as `base`.' }),
  maxAmountRequired: Type.String({ pattern: '^\\d+$', description: 'Atomic units of `asset`.' }),
  resource: Type.String(),
  description: Type.String(),
  mimeType: Type.String(),
  payTo: Type.String(),
  maxTimeoutSeconds: Type.Integer(),
  asset: Type.String(),
  outputSchema: Type.Optional(Type.Unknown()),
  extra: Type.Optional(Type.Unknown()),
});

export const ChallengeBody = Closed({
  x402Version: Type.Literal(1),
  error: Type.String({ description: 'Why: a code of the protocol or ours.' }),
  accepts: Type.Array(Requirement),
  validation: Type.Optional(
    Type.Array(Closed({ path: Type.String(), message: Type.String() }), {
      description: 'What the schema has against the body as it came.',
    }),
  ),
});
