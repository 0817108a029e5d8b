// The first steps of a POST, in the contract's order: rate, size and time of the body, payment on a paid route, schema,
// and only then whose payment it is.
import type { Static, TSchema } from '@sinclair/typebox';
import { LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';
import type { Payer, PaymentGate, RouteRefused } from './payment-gate.ts';
import { readBodyWithin, type Unread } from './read-body.ts';
import { contextOf, countedAs, type RequestContext } from './request-context.ts';
import { parseStrictJson } from './strict-json.ts';
import { type InputFault, type InvalidRequest, invalidRequest, type SchemaCheck } from './validation.ts';

export type ParseDeps = { readonly quota: Quota; readonly clock: Clock };

export type BodyRules<S extends TSchema> = {
  readonly rates: readonly QuotaRule[];
  readonly check: SchemaCheck<S>;
  readonly maxBytes?: number;
  readonly maxDepth?: number;
  /** JSON pointer of the part that is a body of its own: faults within it are placed there. */
  readonly part?: string;
};

type PaidRules<S extends TSchema> = BodyRules<S> & {
  /** Refuses a request by its headers alone, before a payment is asked for. */
  readonly judgeHeaders: (headers: Headers) => Allowed | InvalidRequest;
};

/** What can be refused of any body before it is judged, for the OpenAPI document. */
export const BODY_ERRORS = {
  408: 'The body did not arrive in time.',
  413: 'The body is too large.',
  415: 'The body is not application/json.',
  429: 'Rate limited.',
} as const;

export type Parsed<T> = { readonly body: T };

export async function parseRequest<S extends TSchema>(
  deps: ParseDeps,
  request: Request,
  rules: BodyRules<S>,
): Promise<Parsed<Static<S>> | Refused> {
  const bytes = await readBytes(deps, request, rules);
  return bytes instanceof Uint8Array ? readJson(bytes, request.headers, rules) : bytes;
}

/** A request without a payment is answered with 402 before its body is judged: wallets and crawlers probe with an empty one. */
export async function parsePaidRequest<S extends TSchema>(
  deps: ParseDeps,
  request: Request,
  rules: PaidRules<S>,
  gate: PaymentGate,
): Promise<(Parsed<Static<S>> & Payer) | RouteRefused> {
  const bytes = await readBytes(deps, request, rules);
  if (!(bytes instanceof Uint8Array)) return bytes;
  const judged = rules.judgeHeaders(request.headers);
  if (isRefused(judged)) return judged;
  if (!gate.isOpen(request)) {
    return {
      ...refused('payment_required', 'This call has to be paid for.'),
      ...probed(bytes, request, rules),
    };
  }
  const parsed = readJson(bytes, request.headers, rules);
  if (isRefused(parsed)) return parsed;
  const payer = await gate.identify(request);
  return isRefused(payer) ? payer : { body: parsed.body, ...payer };
}

async function readBytes(
  deps: ParseDeps,
  request: Request,
  { rates, maxBytes = LIMITS.requestBodyBytes.max }: Pick<BodyRules<TSchema>, 'rates' | 'maxBytes'>,
): Promise<Uint8Array | Refused> {
  const context = contextOf(request);
  const rate = await limitRate(deps.quota, rates, context);
  if (isRefused(rate)) return rate;
  return readBody(request, deps.clock, maxBytes);
}

/** From the schema alone. An empty body counts as an empty object: the hints name what a request needs. */
function probed<S extends TSchema>(
  bytes: Uint8Array,
  { headers }: Request,
  rules: BodyRules<S>,
): Pick<RouteRefused, 'hints' | 'body'> {
  if (bytes.byteLength === 0) return { hints: rules.check.faults({}) };
  const read = readJson(bytes, headers, rules);
  if (!isRefused(read)) return { hints: [], body: read.body };
  return { hints: read.refused === 'invalid_request' ? read.details : [{ path: '', message: read.message }] };
}

/** Each route counts for itself: free checks do not use up paid calls. */
export function rateRule(
  route:
    | 'execute'
    | 'policy-check'
    | 'decide'
    | 'decide-daily'
    | 'handoff'
    | 'schedule-preview'
    | 'schedules'
    | 'canary'
    | 'mcp',
  maxRequests: number,
  windowMs = 60_000,
): QuotaRule {
  return { name: `client-${route}`, windowMs, maxRequests };
}

/**
 * Takes one unit of each rule, in their order, up to the first that is exhausted. The RateLimit headers of the answer
 * are those of the rule with the fewest units left.
 */
export async function limitRate(
  quota: Quota,
  rules: readonly QuotaRule[],
  { client, headers }: Pick<RequestContext, 'client' | 'headers'>,
): Promise<Allowed | Refused<'rate_limited'>> {
  let nearest: QuotaState | null = null;
  for (const rule of rules) {
    const state = await quota.take(rule, countedAs(client));
    if (!state.allowed) {
      setRateHeaders(headers, rule, state);
      return refused('rate_limited', 'Too many calls from this address. Come again later.', {
        retryAfterSeconds: secondsToReset(state),
      });
    }
    if (nearest !== null && nearest.remaining <= state.remaining) continue;
    nearest = state;
    setRateHeaders(headers, rule, state);
  }
  return ALLOWED;
}

function setRateHeaders(headers: RequestContext['headers'], rule: QuotaRule, state: QuotaState): void {
  headers.set('ratelimit-limit', String(state.limit));
  headers.set('ratelimit-remaining', String(Math.max(0, state.remaining)));
  headers.set('ratelimit-reset', String(secondsToReset(state)));
  headers.set('ratelimit-policy', `${state.limit};w=${rule.windowMs / 1000}`);
}

const secondsToReset = ({ resetMs }: QuotaState) => Math.max(1, Math.ceil(resetMs / 1000));

/**
 * Returns the body's bytes, counted while they arrive, whatever Content-Length states. What was not read stays on the connection:
 * it cannot carry another request, so it is closed after the answer.
 */
export async function readBody(
  request: Request,
  clock: Clock,
  maxBytes = LIMITS.requestBodyBytes.max,
): Promise<Uint8Array | Unread> {
  const read = await readBodyWithin(request, clock, { maxBytes, withinMs: LIMITS.requestBodyArrivalMs.max });
  if (isRefused(read)) contextOf(request).headers.set('connection', 'close');
  return read;
}

/** Returns the value of the bytes if it fits the schema, else the refusal with the reason. Nothing is repaired. */
function readJson<S extends TSchema>(
  bytes: Uint8Array,
  headers: Headers,
  { check, maxDepth, part = '' }: BodyRules<S>,
): Parsed<Static<S>> | InvalidRequest | Refused<'invalid_json' | 'unsupported_media_type'> {
  if (bytes.byteLength === 0) return refused('invalid_json', 'A JSON body is required.');
  if (!isJson(headers)) {
    return refused('unsupported_media_type', 'Send the body as application/json in UTF-8, not encoded.');
  }
  const text = utf8Text(bytes);
  const parsed = text === null ? ({ outcome: 'syntax' } as const) : parseStrictJson(text, maxDepth);
  if (parsed.outcome === 'syntax') return refused('invalid_json', 'The body is not JSON in UTF-8.');
  if (parsed.outcome === 'faults') return invalidRequest(parsed.faults.map((fault) => placedIn(part, fault)));
  const { value } = parsed;
  return check.matches(value) ? { body: value } : invalidRequest(check.faults(value));
}

/** `part`: see `BodyRules`. */
const placedIn = (part: string, { path, message }: InputFault): InputFault => ({
  path: path.startsWith(`${part}/`) ? path.slice(part.length) : path,
  message,
});

function isJson(headers: Headers): boolean {
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding.trim().toLowerCase() !== 'identity') return false;
  const given = headers.get('content-type') ?? '';
  if (given === 'application/json') return true;
  const [type = '', ...parameters] = given.split(';');
  if (type.trim().toLowerCase() !== 'application/json') return false;
  const charset = parameters
    .map((part) => part.trim().toLowerCase())
    .find((part) => part.startsWith('charset='));
  return charset === undefined || /^charset="?utf-?8"?$/.test(charset);
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** null: not UTF-8. A byte order mark is left out. */
function utf8Text(bytes: Uint8Array): string | null {
  try {
    return UTF8.decode(bytes);
  } catch {
    return null;
  }
}
