// What is sealed for a schedule: its request, read again by its schema.
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { WebhookRequest } from '../job/webhook-request.ts';
import { Closed } from '../schema-parts.ts';
import { shapeCheck } from '../shape-check.ts';

const reader = <S extends TSchema>(schema: S) => {
  const fits = shapeCheck(schema);
  /** Throws if the text is not of the schema: it was sealed by another release, or by a defect. */
  return (text: string): Static<S> => {
    const value: unknown = JSON.parse(text);
    if (fits(value)) return value;
    throw new Error('what was sealed for a schedule cannot be read');
  };
};

/** The URL is parsed where the request is judged. */
export const readSealedRequest: (text: string) => WebhookRequest = reader(
  Closed({ ...WebhookRequest.properties, url: Type.String() }),
);
