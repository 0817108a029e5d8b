// Steps 1 to 3 of a POST, in the contract's order: rate, size and time of the body, payment, schema.
import type { Static, TSchema } from '@sinclair/typebox';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { callOf } from './call.ts';
import type { HttpDeps } from './deps.ts';
import { readJson } from './json-body.ts';
import type { Admitted, PaymentGate } from './payment-gate.ts';
import { limitRate } from './rate-limit.ts';
import { readBody } from './read-body.ts';
import type { SchemaCheck } from './schema-check.ts';

export type IntakeRules<S extends TSchema> = {
  readonly rate: QuotaRule;
  readonly check: SchemaCheck<S>;
  readonly gate: PaymentGate;
};

export type Taken<T> = Admitted & { readonly body: T };

const BODY = { maxBytes: LIMITS.requestBodyBytes, arrivalMs: LIMITS.requestBodyArrivalMs };

export async function takeIn<S extends TSchema>(
  deps: Pick<HttpDeps, 'quota' | 'clock'>,
  request: Request,
  rules: IntakeRules<S>,
): Promise<Taken<Static<S>> | Refused> {
  const call = callOf(request);
  const limited = await limitRate(deps.quota, rules.rate, call);
  if (limited !== null) return limited;
  const bytes = await readBody(request, call, deps.clock, BODY);
  if (!(bytes instanceof Uint8Array)) return bytes;
  const admitted = await rules.gate(request);
  if (isRefused(admitted)) return admitted;
  const body = readJson(bytes, request.headers, rules.check);
  return isRefused(body) ? body : { ...admitted, body: body.value };
}
