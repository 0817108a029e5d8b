// The badge: one word for the status of a job. Always 200, so that a page that shows it is never broken.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { type Standing, type StandingDeps, standingOf } from '#src/http/routes/verify.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { markup } from './markup.ts';

const COLOURS = { verified: '#2da44e', failed: '#cf222e', running: '#bf8700', unknown: '#6e7781' } as const;

type BadgeDeps = StandingDeps & { readonly logger: Logger; readonly clock: Clock };

export function badgeRoutes(deps: BadgeDeps) {
  const logFailure = failureLog(deps, 'badge without records');
  return new Elysia().get(
    ROUTES.proofBadge.path,
    async ({ params, request }) => {
      const state = await stateOf(deps, params.jobOrReceiptId, (cause) =>
        logFailure(contextOf(request).id, cause),
      );
      return new Response(badge(state), {
        headers: {
          'content-type': 'image/svg+xml',
          'cache-control': 'public, max-age=30',
          'content-security-policy': "default-src 'none'",
        },
      });
    },
    unlisted,
  );
}

async function stateOf(
  deps: StandingDeps,
  id: string,
  logFailure: (cause: unknown) => void,
): Promise<Standing['state'] | 'unknown'> {
  try {
    const standing = await standingOf(deps, id);
    return isRefused(standing) ? 'unknown' : standing.state;
  } catch (cause) {
    logFailure(cause);
    return 'unknown';
  }
}

function badge(state: keyof typeof COLOURS): string {
  const left = 78;
  const width = left + 16 + state.length * 7;
  const { markup: svg } =
    markup`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="relay proof: ${state}">
<title>relay proof: ${state}</title>
<rect width="${width}" height="20" rx="3" fill="#24292f"/>
<rect x="${left}" width="${width - left}" height="20" rx="3" fill="${COLOURS[state]}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="8" y="14">relay proof</text><text x="${left + 8}" y="14">${state}</text></g>
</svg>`;
  return svg;
}
