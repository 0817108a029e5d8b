// The first steps of a POST, in the contract's order: rate, size and time of the body, payment where one is asked for,
// schema, and only then whose payment it is.
import type { Static, TSchema } from '@sinclair/typebox';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { readJson } from './json-body.ts';
import type { Payer, PaymentGate, RouteRefused } from './payment-gate.ts';
import { limitRate } from './rate-limit.ts';
import { readBody } from './read-body.ts';
import { callOf } from './request-context.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { InputFault } from './validation-error.ts';

export type IntakeDeps = Pick<HttpDeps, 'quota' | 'clock'>;

export type IntakeRules<S extends TSchema> = {
  /** Every one of them has to let the call through. */
  readonly rates: readonly QuotaRule[];
  readonly check: SchemaCheck<S>;
  /** Of the body; LIMITS.requestBodyBytes.max where it is absent. */
  readonly maxBytes?: number;
};

/** What can be refused of any body before it is judged, for the interface description. */
export const INTAKE_ERRORS = {
  408: 'The body did not arrive in time.',
  413: 'The body is too large.',
  415: 'The body is not application/json.',
  429: 'Rate limited.',
} as const;

export type Taken<T> = { readonly body: T };

export async function takeIn<S extends TSchema>(
  deps: IntakeDeps,
  request: Request,
  rules: IntakeRules<S>,
): Promise<Taken<Static<S>> | Refused> {
  const bytes = await takeBytes(deps, request, rules);
  return bytes instanceof Uint8Array ? takeBody(bytes, request, rules) : bytes;
}

/** A call without a payment is asked for one before its body is judged: wallets and crawlers probe with an empty one. */
export async function takeInPaid<S extends TSchema>(
  deps: IntakeDeps,
  request: Request,
  rules: IntakeRules<S>,
  gate: PaymentGate,
): Promise<(Taken<Static<S>> & Payer) | RouteRefused> {
  const bytes = await takeBytes(deps, request, rules);
  if (!(bytes instanceof Uint8Array)) return bytes;
  if (!gate.isOpen(request)) {
    const hints = hintsOn(bytes, request, rules);
    return { ...refused('payment_required', 'This call has to be paid for.'), hints };
  }
  const taken = takeBody(bytes, request, rules);
  if (isRefused(taken)) return taken;
  const payer = await gate.identify(request);
  return isRefused(payer) ? payer : { ...taken, ...payer };
}

async function takeBytes(
  deps: IntakeDeps,
  request: Request,
  { rates, maxBytes = LIMITS.requestBodyBytes.max }: Omit<IntakeRules<TSchema>, 'check'>,
): Promise<Uint8Array | Refused> {
  const call = callOf(request);
  const limited = await limitRate(deps.quota, rates, call);
  if (limited !== null) return limited;
  return readBody(request, call, deps.clock, { maxBytes, arrivalMs: LIMITS.requestBodyArrivalMs.max });
}

function takeBody<S extends TSchema>(bytes: Uint8Array, { headers }: Request, { check }: IntakeRules<S>) {
  const body = readJson(bytes, headers, check);
  return isRefused(body) ? body : { body: body.value };
}

/** By the schema alone. An empty body is taken for an empty object: what it lacks is what a call needs. */
function hintsOn<S extends TSchema>(
  bytes: Uint8Array,
  { headers }: Request,
  { check }: IntakeRules<S>,
): readonly InputFault[] {
  if (bytes.byteLength === 0) return check.faults({});
  const body = readJson(bytes, headers, check);
  if (!isRefused(body)) return [];
  return body.refused === 'invalid_request' ? body.details : [{ path: '', message: body.message }];
}
