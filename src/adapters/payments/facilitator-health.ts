// The facilitator's health: it is asked what it supports, with our login.
import { z } from '@x402/core/schemas';
import type { FacilitatorProblem } from '#src/domain/monitoring/health.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Payments } from '#src/ports/payments.ts';
import { type ExchangeAnswer, type ExchangeFailure, singleExchange } from './exchange.ts';
import type { FacilitatorAddress } from './facilitator.ts';
import { type FacilitatorWatch, type Unusable, unusable } from './facilitator-watch.ts';
import type { Terms } from './requirements.ts';

const HEALTH_TIMEOUT_MS = 2000;
const HEALTH_CACHED_MS = 10_000;
/** With a larger difference, valid payments may be judged expired or not yet valid. */
const SKEW_MS = 5000;

const Supported = z.object({
  kinds: z.array(z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() })),
});

/**
 * Whether the facilitator answers, accepts our login and supports our kind of payment, and whether the last paid calls
 * worked, since some facilitators answer this question without a login. One request at a time, cached for 10 s. Never throws.
 */
export function facilitatorHealth(
  deps: FacilitatorAddress & {
    readonly terms: Terms;
    readonly watch: FacilitatorWatch;
    readonly clock: Clock;
    readonly logger: Logger;
  },
): Payments['health'] {
  const { terms, facilitatorUrl, login, watch, clock, logger } = deps;
  let last: { readonly atMs: number; readonly problem: Promise<FacilitatorProblem | null> } | null = null;

  async function query(): Promise<FacilitatorProblem | null> {
    const url = `${facilitatorUrl}/supported`;
    const answer = await singleExchange({ url, login, timeoutMs: HEALTH_TIMEOUT_MS });
    // Before anything else: a token of a clock that differs is refused.
    if (!('code' in answer)) reportSkew(answer);
    const kinds = kindsIn(answer);
    const failure = unusable(answer, kinds !== null) ?? (supports(terms, kinds ?? []) ? null : UNSUPPORTED);
    if (failure !== null) watch.failed('supported', failure, 'code' in answer ? answer.why : null);
    return failure?.problem ?? null;
  }

  /** Never rejects. */
  async function queryOrBug(): Promise<FacilitatorProblem | null> {
    try {
      return await query();
    } catch (cause) {
      logger.bug('the facilitator could not be asked for what it supports', { cause });
      return 'internal_error';
    }
  }

  function reportSkew({ dateMs }: ExchangeAnswer): void {
    if (dateMs === null) return;
    const skewMs = clock.now() - dateMs;
    // The header has whole seconds.
    const differs = Math.abs(skewMs) > SKEW_MS + 1000;
    const facts = { skewSeconds: Math.round(skewMs / 1000) };
    logger.condition('facilitatorClock', differs ? 'differs' : null, facts);
  }

  return async () => {
    const atMs = clock.monotonic();
    if (last === null || atMs - last.atMs >= HEALTH_CACHED_MS) last = { atMs, problem: queryOrBug() };
    const problem = (await last.problem) ?? watch.problem();
    return problem === null ? { ok: true } : { ok: false, problem };
  };
}

const UNSUPPORTED: Unusable = { problem: 'unsupported', cause: 'unsupported' };

type Kinds = z.infer<typeof Supported>['kinds'];

/** null: the answer does not list them. */
function kindsIn(answer: ExchangeAnswer | ExchangeFailure): Kinds | null {
  if ('code' in answer || answer.status !== 200) return null;
  return Supported.safeParse(answer.json).data?.kinds ?? null;
}

const supports = (terms: Terms, kinds: Kinds): boolean =>
  kinds.some(
    ({ x402Version, scheme, network }) =>
      x402Version === 2 && scheme === terms.requirements.scheme && covers(network, terms.network),
  );

/** Facilitators list a network or all of a namespace: `eip155:*`. */
const covers = (listed: string, network: string): boolean =>
  listed === network || listed === `${network.slice(0, network.indexOf(':'))}:*`;
