// Whether the facilitator answers and knows our kind of payment; and, once each, what the operator must be told.
import { z } from '@x402/core/schemas';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Exchange, ExchangeAnswer } from './exchange.ts';
import type { Terms } from './terms.ts';

const TIMEOUT_MS = 2000;
const REMEMBERED_MS = 10_000;
/** reliability: beyond this, validity windows of payments are judged wrongly on one side. */
const SKEW_MS = 5000;

const Supported = z.object({
  kinds: z.array(z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() })),
});

export type Health = () => Promise<{ readonly ok: boolean }>;

/** One question at a time, whoever asks; its answer is remembered for 10 s. Never throws. */
export function facilitatorHealth(deps: {
  readonly terms: Terms;
  readonly exchange: Exchange;
  readonly facilitatorUrl: string;
  readonly clock: Clock;
  readonly logger: Logger;
}): Health {
  const { terms, exchange, facilitatorUrl, clock, logger } = deps;
  let known: { readonly ok: boolean; readonly atMs: number } | null = null;
  let asking: Promise<{ readonly ok: boolean }> | null = null;
  let skewTold = false;

  async function ask(): Promise<{ readonly ok: boolean }> {
    const answer = await exchange({ url: `${facilitatorUrl}/supported`, timeoutMs: TIMEOUT_MS });
    if (!('code' in answer)) tellSkew(answer);
    const ok = !('code' in answer) && supports(terms, answer);
    known = { ok, atMs: clock.monotonic() };
    return { ok };
  }

  function tellSkew({ dateMs }: ExchangeAnswer): void {
    if (dateMs === null || skewTold) return;
    const skewMs = clock.now() - dateMs;
    // the header has whole seconds
    if (Math.abs(skewMs) <= SKEW_MS + 1000) return;
    skewTold = true;
    logger.warn(
      'the facilitator’s clock differs from ours: payments may be judged expired or not yet valid',
      {
        skewSeconds: Math.round(skewMs / 1000),
      },
    );
  }

  return async () => {
    if (known !== null && clock.monotonic() - known.atMs < REMEMBERED_MS) return { ok: known.ok };
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}

function supports(terms: Terms, answer: ExchangeAnswer): boolean {
  const form = Supported.safeParse(answer.json);
  if (answer.status !== 200 || !form.success) return false;
  return form.data.kinds.some(
    ({ x402Version, scheme, network }) =>
      x402Version === 2 && scheme === terms.requirements.scheme && covers(network, terms.network),
  );
}

/** Facilitators may name a network or all of a kind: `eip155:*`. */
const covers = (said: string, network: string): boolean =>
  said === network || said === `${network.slice(0, network.indexOf(':'))}:*`;
