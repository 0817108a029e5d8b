// The transparency log, for everyone: checkpoint, key, tiles and proofs (C2SP tlog-tiles, tlog-checkpoint, tlog-proof).

import { JSON_TYPE, ROUTES, TEXT_TYPE } from '#src/discovery/routes.ts';
import { isRefused, refused } from '#src/domain/refusal.ts';
import { parseTilePath } from '#src/domain/transparency/tiles.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { findForSure, isIdOf, recordNotFound } from '#src/http/records.ts';
import { invalidRequest, readInteger } from '#src/http/request/validation.ts';
import { taggedAnswer } from '#src/http/response/conditional-get.ts';
import { routeNotFound } from '#src/http/response/errors.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

/** The log grows: C2SP tlog-tiles wants no more than a few seconds. */
const FEW_SECONDS = { 'cache-control': 'public, max-age=2' } as const;
/** What never changes: it only ever comes to be. */
const FOR_EVER = { 'cache-control': 'public, max-age=31536000, immutable' } as const;

const noLog = refused('route_not_found', 'This relay keeps no transparency log.');
const noKey = refused(
  'route_not_found',
  'No valid key has signed a checkpoint: there is no transparency log to trust.',
);
const noTile = refused('route_not_found', 'The newest checkpoint has no such tile, or not of this width.');

export type TransparencyRouteDeps = ProgressOf<'reachedHead'> & { readonly transparency: Transparency };

export function transparencyRoutes({ transparency, progress }: TransparencyRouteDeps): Endpoint[] {
  return [
    endpoint(ROUTES.logCheckpoint, null, ({ request }) => {
      const find = async () => {
        const isNewest = new URL(request.url).searchParams.has('newest');
        const note = await (isNewest ? transparency.newest() : transparency.checkpoint());
        return note === null ? null : text(request, note);
      };
      return findForSure(progress, find, noLog);
    }),
    endpoint(ROUTES.logKey, null, ({ request }) => {
      const find = async () => {
        const key = await transparency.key();
        return key === null ? null : text(request, `${key}\n`);
      };
      return findForSure(progress, find, noKey);
    }),
    endpoint(ROUTES.logTile, null, async ({ request }) => {
      // The path as it was sent: what is cached permanently has one address.
      const { pathname } = new URL(request.url);
      const name = parseTilePath(pathname.slice(ROUTES.logTile.path.length - '*'.length));
      if (name === null) return routeNotFound();
      const find = async () => {
        const body = await transparency.tile(name);
        if (body !== null)
          return taggedAnswer(request, new Uint8Array(body), ROUTES.logTile.mediaType, FOR_EVER);
        return (await transparency.checkpoint()) === null ? noLog : noTile;
      };
      return findForSure(progress, find, noTile);
    }),
    endpoint(ROUTES.logProof, null, async ({ request, id }) => {
      const disposition = { 'content-disposition': `inline; filename="${id}.tlog-proof"` };
      const find = async () => {
        const proof = await transparency.prove(id);
        return typeof proof === 'string' ? text(request, proof, disposition) : proof;
      };
      return isIdOf('receipt', id) ? findForSure(progress, find, noLog) : recordNotFound('receipt');
    }),
    endpoint(ROUTES.logConsistency, null, async ({ request }) => {
      const [from, to] = [readInteger(request.url, size('from')), readInteger(request.url, size('to'))];
      if (typeof from !== 'number' || typeof to !== 'number')
        return invalidRequest([from, to].flatMap((size) => (typeof size === 'number' ? [] : size.details)));
      const proof = await findForSure(progress, () => transparency.consistency(from, to), noLog);
      // What is cached permanently has one address.
      const caching = new URL(request.url).search === `?from=${from}&to=${to}` ? FOR_EVER : FEW_SECONDS;
      return isRefused(proof) ? proof : taggedAnswer(request, JSON.stringify(proof), JSON_TYPE, caching);
    }),
  ];
}

const size = (name: string) => ({ name, min: 0, max: 1e15 - 1, description: 'Leaves of the log.' });

const text = (request: Request, body: string, headers: Readonly<Record<string, string>> = {}) =>
  taggedAnswer(request, body, TEXT_TYPE, { ...FEW_SECONDS, ...headers });
