// What is sealed for a schedule: its request, and the payment header of each run. Read again by their schemas.
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { WebhookRequest } from '../job/webhook-request.ts';
import { Closed } from '../schema-parts.ts';
import { shapeCheck } from '../shape-check.ts';

/** The header that brought a payment, to read it again when its run is due. */
const PaymentHeader = Closed({ name: Type.String(), value: Type.String() });
export type PaymentHeader = Static<typeof PaymentHeader>;

const reader = <S extends TSchema>(schema: S) => {
  const fits = shapeCheck(schema);
  /** Throws if the text is not of the schema: it was sealed by another release, or by a defect. */
  return (text: string): Static<S> => {
    const value: unknown = JSON.parse(text);
    if (fits(value)) return value;
    throw new Error('what was sealed for a schedule cannot be read');
  };
};

export const readSealedHeader = reader(PaymentHeader);
/** The URL is parsed where the request is judged. */
export const readSealedRequest: (text: string) => WebhookRequest = reader(
  Closed({ ...WebhookRequest.properties, url: Type.String() }),
);
