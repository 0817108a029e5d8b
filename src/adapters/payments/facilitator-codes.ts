// The reason codes of facilitators. They are matched exactly: any other text may contain values, a signature or our own
// login, which must not be logged, stored or returned.
import {
  OPEN_REASONS,
  OWN_FAILURE_REASONS,
  type PaymentReason,
  TERMINAL_REASONS,
} from '#src/domain/payment/reasons.ts';

const TERMINAL: ReadonlySet<string> = new Set(TERMINAL_REASONS);
const OWN_FAILURE: ReadonlySet<string> = new Set(OWN_FAILURE_REASONS);
const OPEN: ReadonlySet<string> = new Set(OPEN_REASONS);

const isKnown = (code: string): boolean => TERMINAL.has(code) || OWN_FAILURE.has(code) || OPEN.has(code);

/** Ends the payment if it is the answer to its first settle call. */
export const isFinalRefusal = (code: string): boolean => TERMINAL.has(code);

/** A verify that failed in the facilitator. */
export const isOwnFailure = (code: string): boolean => OWN_FAILURE.has(code);

/** The facilitator's code if it is a known one, otherwise `other`. */
export const knownCodeOr = (code: unknown, other: PaymentReason): string =>
  typeof code === 'string' && isKnown(code) ? code : other;
