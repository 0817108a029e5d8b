// The HTTP interface of a witness (C2SP tlog-witness): `POST /add-checkpoint` and `GET /<origin hash>/checkpoint`.
import { utf8 } from '#src/domain/encoding.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { WITNESS_SERVER_LIMITS } from '#src/domain/transparency/witness.ts';
import { TokenBuckets } from '#src/lib/token-bucket.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { LineLogger } from '#src/ports/logger.ts';
import type { AddCheckpoint, Witness } from '#src/usecases/witness/add-checkpoint.ts';
import type { Fetch } from './request/pipeline.ts';
import { readBodyWithin, type Unread } from './request/read-body.ts';
import { clientAddress, countedAs, isLoopbackClient } from './request/request-context.ts';

const CHECKPOINT_PATH = /^\/([0-9a-f]{64})\/checkpoint$/;

/** X-Forwarded-For is believed where the connection comes from this machine: a reverse proxy that ends TLS. */
export function witnessApp(
  witness: Witness,
  { clock, logger }: { readonly clock: Clock; readonly logger: LineLogger },
): Fetch {
  const { requestsPerSecond: perSecond, requestsAtOnce: burst } = WITNESS_SERVER_LIMITS;
  const buckets = new TokenBuckets(clock, { perSecond, burst });

  async function answer(request: Request, peerAddress: string): Promise<Response> {
    const client = clientAddress(peerAddress, request.headers.get('x-forwarded-for'), isLoopbackClient);
    const { allowed, waitMs } = buckets.take(countedAs(client));
    if (!allowed)
      return text(429, 'Too many requests from this address.', {
        'retry-after': String(Math.ceil(waitMs / 1000)),
      });
    const { pathname } = new URL(request.url);
    if (pathname === '/add-checkpoint') {
      if (request.method !== 'POST') return text(405, 'Send a POST.', { allow: 'POST' });
      return addCheckpoint(request);
    }
    const [, originHash] = CHECKPOINT_PATH.exec(pathname) ?? [];
    if (originHash === undefined) return text(404, 'There is nothing at this path.');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return text(405, 'Send a GET.', { allow: 'GET, HEAD' });
    const checkpoint = await witness.findCheckpoint(originHash);
    return checkpoint === null
      ? text(404, 'This witness has cosigned no checkpoint of that log.')
      : ok(checkpoint);
  }

  async function addCheckpoint(request: Request): Promise<Response> {
    const { bodyBytes: maxBytes, bodyMs: withinMs } = WITNESS_SERVER_LIMITS;
    const body = await readBodyWithin(request, clock, { maxBytes, withinMs });
    // What was not read stays on the connection.
    if (isRefused(body)) return text(UNREAD[body.refused], body.message, { connection: 'close' });
    return answerOf(await witness.addCheckpoint(body));
  }

  return async (request, peer) => {
    try {
      return await answer(request, peer.clientAddress);
    } catch (cause) {
      logger.error('a request to the witness failed; no cosignature was returned', { cause });
      return text(500, 'The witness cannot answer now.', { connection: 'close' });
    }
  };
}

const UNREAD: Readonly<Record<Unread['refused'], number>> = {
  body_too_large: 413,
  body_timeout: 408,
  invalid_json: 400,
};

/** The statuses of C2SP tlog-witness. */
function answerOf(outcome: AddCheckpoint): Response {
  switch (outcome.kind) {
    case 'cosigned':
      return ok(outcome.lines);
    case 'conflict':
      return text(409, String(outcome.size), { 'content-type': 'text/x.tlog.size' });
    case 'malformed':
      return text(400, `Bad request: ${outcome.reason}.`);
    case 'not_signed':
      return text(403, `Forbidden: ${outcome.reason}.`);
    case 'unknown_log':
      return text(404, `Not found: ${outcome.reason}.`);
    case 'unprocessable':
      return text(422, `Unprocessable: ${outcome.reason}.`);
    default:
      return outcome satisfies never;
  }
}

/** Every answer of the witness. */
const respond = (status: number, lines: string, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(utf8(lines), {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff', ...headers },
  });

const ok = (lines: string): Response => respond(200, lines);

const text = (status: number, line: string, headers: Readonly<Record<string, string>> = {}): Response =>
  respond(status, `${line}\n`, headers);
