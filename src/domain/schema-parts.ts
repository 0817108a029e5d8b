// Schema parts that several answers share.
import { type TObject, type TProperties, Type } from '@sinclair/typebox';

export { Count, HttpStatus, Nullable, oneOf as OneOf } from './event-fields.ts';

/** An object without additional properties. */
export const Closed = <P extends TProperties>(properties: P, description?: string): TObject<P> =>
  Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });

export const Link = Type.String({ description: 'Absolute address.' });
export const Instant = Type.String({ description: 'RFC 3339, UTC, milliseconds.' });
export const Commitment = Type.String({
  pattern: '^[A-Za-z0-9_-]{43}$',
  description: 'Salted commitment: base64url(SHA-256(disclosure)).',
});

export const Warnings = Type.Array(Closed({ code: Type.String(), message: Type.String() }));
