// The page where anyone verifies a receipt in their own browser, and the script that it and the proof page run.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from './deps.ts';
import { markup } from './markup.ts';
import { unlisted } from './operation.ts';
import { pagesFrom } from './page.ts';

export function verifyPageRoutes(deps: HttpDeps) {
  const page = pagesFrom(deps.settings.baseUrl);
  return new Elysia()
    .get(
      ROUTES.verifyPage.path,
      () =>
        page(200, {
          title: 'Verify a receipt',
          description: 'Verify a receipt in your own browser.',
          path: ROUTES.verifyPage.path,
          content: markup`<h1>Verify a receipt</h1>`,
        }),
      unlisted,
    )
    .get(
      ROUTES.verifyScript.path,
      () =>
        new Response(deps.verifyScript, { headers: { 'content-type': 'text/javascript; charset=utf-8' } }),
      unlisted,
    );
}
