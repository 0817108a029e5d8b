// The transparency log, for everyone: checkpoint, key, tiles and proofs (C2SP tlog-tiles, tlog-checkpoint, tlog-proof).
import { Elysia } from 'elysia';
import { JSON_TYPE, TEXT_TYPE, TILE_TYPE } from '#src/discovery/document.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { isRefused, refused } from '#src/domain/refusal.ts';
import { parseTilePath } from '#src/domain/transparency/tiles.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { findForSure } from '#src/http/request/read.ts';
import { readCounts } from '#src/http/request/validation.ts';
import { taggedAnswer } from '#src/http/response/conditional-get.ts';
import { refusalAnswer, routeNotFound } from '#src/http/response/errors.ts';
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

export function transparencyRoutes(deps: TransparencyDeps) {
  const { transparency } = deps;
  return new Elysia()
    .get(
      ROUTES.logCheckpoint.path,
      async ({ request }) => {
        const found = await sure(deps, transparency.checkpoint, noLog);
        return isRefused(found) ? refusalAnswer(found) : text(request, found.body);
      },
      unlisted,
    )
    .get(
      ROUTES.logKey.path,
      async ({ request }) => {
        const found = await sure(deps, transparency.key, noKey);
        return isRefused(found) ? refusalAnswer(found) : text(request, `${found.body}\n`);
      },
      unlisted,
    )
    .get(ROUTES.logTile.path, ({ request }) => tileAnswer(deps, request), unlisted)
    .get(
      ROUTES.logProof.path,
      ({ request, params }) => proofAnswer(deps, request, params.receiptId),
      unlisted,
    )
    .get(ROUTES.logConsistency.path, ({ request }) => consistencyAnswer(deps, request), unlisted);
}

/** As every read: the rows may not have what the log has. */
function sure({ progress }: TransparencyDeps, ask: () => Promise<string | null>, missing: typeof noLog) {
  const find = async () => {
    const body = await ask();
    return body === null ? null : { body };
  };
  return findForSure(progress, find, missing);
}

const text = (request: Request, body: string, headers: Readonly<Record<string, string>> = {}) =>
  taggedAnswer(request, body, TEXT_TYPE, { ...FEW_SECONDS, ...headers });

/** The path as it was sent: what is cached permanently has one address. */
async function tileAnswer(deps: TransparencyDeps, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const name = parseTilePath(pathname.slice(ROUTES.logTile.path.length - '*'.length));
  if (name === null) return routeNotFound();
  const find = async () => {
    const body = await deps.transparency.tile(name);
    if (body !== null) return { body };
    return (await deps.transparency.checkpoint()) === null ? noLog : noTile;
  };
  const found = await findForSure(deps.progress, find, noTile);
  if (isRefused(found)) return refusalAnswer(found);
  return taggedAnswer(request, new Uint8Array(found.body), TILE_TYPE, FOR_EVER);
}

async function proofAnswer(deps: TransparencyDeps, request: Request, receiptId: string): Promise<Response> {
  if (!isReceiptId(receiptId)) return refusalAnswer(receiptMissing);
  const find = async () => {
    const proof = await deps.transparency.prove(receiptId);
    return typeof proof === 'string' ? { proof } : proof;
  };
  const found = await findForSure(deps.progress, find, noLog);
  if (isRefused(found)) return refusalAnswer(found);
  const disposition = `inline; filename="${receiptId}.tlog-proof"`;
  return text(request, found.proof, { 'content-disposition': disposition });
}

async function consistencyAnswer(deps: TransparencyDeps, request: Request): Promise<Response> {
  const sizes = readCounts(request.url, ['from', 'to']);
  if (isRefused(sizes)) return refusalAnswer(sizes);
  const [from, to] = sizes;
  const found = await findForSure(deps.progress, () => deps.transparency.consistency(from, to), noLog);
  if (isRefused(found)) return refusalAnswer(found);
  return taggedAnswer(request, JSON.stringify(found), JSON_TYPE, FOR_EVER);
}
