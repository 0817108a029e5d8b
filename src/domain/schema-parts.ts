// Schema parts that several answers share.
import {
  type TLiteral,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
} from '@sinclair/typebox';

/** An object without additional properties. */
export const Closed = <P extends TProperties>(properties: P, description?: string): TObject<P> =>
  Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });

export const Nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const Link = Type.String({ description: 'Absolute address.' });
export const Instant = Type.String({ description: 'RFC 3339, UTC, milliseconds.' });
export const HttpStatus = Type.Integer({ minimum: 100, maximum: 999 });
export const Count = Type.Integer({ minimum: 0 });
export const Commitment = Type.String({
  pattern: '^[A-Za-z0-9_-]{43}$',
  description: 'Salted commitment: base64url(SHA-256(disclosure)).',
});

/** One of these strings. */
export const OneOf = <const V extends readonly string[]>(...values: V) =>
  Type.Union(values.map((value) => Type.Literal(value))) as unknown as TUnion<{
    -readonly [K in keyof V]: TLiteral<V[K]>;
  }>;
