// The transparency log, for everyone: checkpoint, key, tiles and proofs (C2SP tlog-tiles, tlog-checkpoint, tlog-proof).

import { JSON_TYPE, ROUTES, TEXT_TYPE } from '#src/discovery/routes.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { parseTilePath } from '#src/domain/transparency/tiles.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { findForSure } from '#src/http/request/read.ts';
import { readCounts } from '#src/http/request/validation.ts';
import { taggedAnswer } from '#src/http/response/conditional-get.ts';
import { routeNotFound } from '#src/http/response/errors.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';
import { isReceiptId, receiptMissing } from './jobs.ts';

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

export type TransparencyDeps = ProgressOf<'reachedHead'> & { readonly transparency: Transparency };

type Found = string | Uint8Array<ArrayBuffer> | Refused | null;

export function transparencyRoutes({ transparency, progress }: TransparencyDeps): Endpoint[] {
  /** As every read: the rows may not have what the log has. */
  const read = async (find: () => Promise<Found>, missing: Refused, publish: Publish) => {
    const wrapped = async () => {
      const body = await find();
      return body !== null && isBody(body) ? { body } : body;
    };
    const found = await findForSure(progress, wrapped, missing);
    return isRefused(found) ? found : publish(found.body);
  };
  return [
    endpoint(ROUTES.logCheckpoint, null, ({ request }) =>
      read(transparency.checkpoint, noLog, text(request)),
    ),
    endpoint(ROUTES.logKey, null, ({ request }) => {
      const line = async () => {
        const key = await transparency.key();
        return key === null ? null : `${key}\n`;
      };
      return read(line, noKey, text(request));
    }),
    endpoint(ROUTES.logTile, null, async ({ request }) => {
      // The path as it was sent: what is cached permanently has one address.
      const { pathname } = new URL(request.url);
      const name = parseTilePath(pathname.slice(ROUTES.logTile.path.length - '*'.length));
      if (name === null) return routeNotFound();
      const tile = async () => {
        const body = await transparency.tile(name);
        if (body !== null) return new Uint8Array(body);
        return (await transparency.checkpoint()) === null ? noLog : noTile;
      };
      return read(tile, noTile, (body) => taggedAnswer(request, body, ROUTES.logTile.mediaType, FOR_EVER));
    }),
    endpoint(ROUTES.logProof, null, async ({ request, id }) => {
      if (!isReceiptId(id)) return receiptMissing;
      const disposition = { 'content-disposition': `inline; filename="${id}.tlog-proof"` };
      return read(() => transparency.prove(id), noLog, text(request, disposition));
    }),
    endpoint(ROUTES.logConsistency, null, async ({ request }) => {
      const sizes = readCounts(request.url, ['from', 'to']);
      if (isRefused(sizes)) return sizes;
      const proof = await findForSure(progress, () => transparency.consistency(...sizes), noLog);
      return isRefused(proof) ? proof : taggedAnswer(request, JSON.stringify(proof), JSON_TYPE, FOR_EVER);
    }),
  ];
}

type Body = Exclude<Found, Refused | null>;
type Publish = (body: Body) => Response;

const isBody = (found: Exclude<Found, null>): found is Body =>
  typeof found === 'string' || found instanceof Uint8Array;

const text =
  (request: Request, headers: Readonly<Record<string, string>> = {}): Publish =>
  (body) =>
    taggedAnswer(request, body, TEXT_TYPE, { ...FEW_SECONDS, ...headers });
