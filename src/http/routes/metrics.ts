// Figures for Prometheus. Who may read them is decided by where the call comes from, and no other check is made:
// without METRICS_PUBLIC only this machine itself, never what a proxy on it passes on, nor a page in its browser.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { isLoopback } from '#src/http/request/client-address.ts';
import { callOf } from '#src/http/request/request-context.ts';
import { routeNotFound } from '#src/http/response/errors.ts';

export function metricsRoutes({ operators, settings }: HttpDeps) {
  return new Elysia().get(
    ROUTES.metrics.path,
    async ({ request }) => {
      // To everybody else there is nothing here.
      if (!settings.metricsPublic && !isFromThisMachine(request)) return routeNotFound();
      const { contentType, text } = await operators.exposition();
      return new Response(text, { headers: { 'content-type': contentType } });
    },
    unlisted,
  );
}

/** What proxies add to say for whom they call (RFC 7239, RFC 9110 §7.6.3, and custom). */
const OF_PROXIES = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'via',
];

/** What browsers add to the calls of a page (fetch standard): every answer here is open to pages of any origin. */
const OF_PAGES = ['origin', 'referer', 'sec-fetch-site'];

function isFromThisMachine(request: Request): boolean {
  const { headers } = request;
  if (!isLoopback(callOf(request).client)) return false;
  if ([...OF_PROXIES, ...OF_PAGES].some((name) => headers.has(name))) return false;
  // A proxy that adds nothing, or a page whose own name was pointed here, still asks for another host.
  const host = headers.get('host');
  return host === null || isLoopbackHost(host);
}

function isLoopbackHost(host: string): boolean {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}
