// The extension payment-identifier: an id of the client's choice in a payment of version 2. Supported, not required.
import {
  isValidPaymentId,
  PAYMENT_ID_MAX_LENGTH,
  PAYMENT_ID_MIN_LENGTH,
  PAYMENT_IDENTIFIER,
} from '@x402/extensions/payment-identifier';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { isObject } from '#src/lib/is-object.ts';

/** A member of `extensions` in a 402. The package's own schema is three times as long, in a header that must be short. */
export const IDENTIFIER_OFFER = {
  [PAYMENT_IDENTIFIER]: {
    info: { required: false },
    schema: {
      properties: {
        id: { pattern: `^[a-zA-Z0-9_-]{${PAYMENT_ID_MIN_LENGTH},${PAYMENT_ID_MAX_LENGTH}}$` },
      },
    },
  },
};

const EXPECTED = `Expected ${PAYMENT_ID_MIN_LENGTH} to ${PAYMENT_ID_MAX_LENGTH} letters, digits, hyphens and underscores`;

/**
 * The id in `extensions` of a payment; null if it has none, as when a client only repeats our offer. An id that breaks the
 * extension's rule is an invalid request, as the extension defines it. The package's own validator is not used: it
 * compiles the schema that the client sends.
 */
export function readIdentifier(
  extensions: Readonly<Record<string, unknown>>,
): string | null | Refused<'invalid_request'> {
  const extension = Object.hasOwn(extensions, PAYMENT_IDENTIFIER) ? extensions[PAYMENT_IDENTIFIER] : null;
  if (extension === null) return null;
  const info = memberOf(extension, 'info');
  if (!isObject(info)) return invalid('/info', 'Expected an object');
  const id = memberOf(info, 'id');
  if (id === undefined) return null;
  return typeof id === 'string' && isValidPaymentId(id) ? id : invalid('/info/id', EXPECTED);
}

const memberOf = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** `path`: JSON pointer into the payment. */
const invalid = (place: string, message: string): Refused<'invalid_request'> =>
  refused('invalid_request', 'The payment identifier in the payment is not valid: see details.', {
    details: [{ path: `/extensions/${PAYMENT_IDENTIFIER}${place}`, message }],
  });
