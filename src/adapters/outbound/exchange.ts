// One HTTP/1.1 request and its response on an authenticated connection. The body is read up to the limit and never
// decompressed.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { retryAfterMs } from '../../domain/job/retry.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { OutboundRequest } from '../../ports/outbound.ts';
import { type Attempt, AttemptFailed, type Stopwatch } from './attempt.ts';

/** Resolves when the response is complete or has reached the limit; rejects with `AttemptFailed`. */
export function exchange(
  request: OutboundRequest,
  socket: TLSSocket,
  attempt: Attempt,
  watch: Stopwatch,
  now: () => number,
): Promise<void> {
  attempt.phase = 'request';
  return new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => reject(failureOf(error));
    const call = httpsRequest(callOptions(request, socket));
    call.once('finish', () => {
      if (attempt.phase === 'request') attempt.phase = 'headers';
    });
    call.on('information', () => headArrived(attempt, watch));
    call.once('upgrade', (response) => {
      headArrived(attempt, watch);
      attempt.status = response.statusCode ?? null;
      reject(new AttemptFailed('protocol_error'));
    });
    call.once('response', (response) => {
      readHead(response, attempt, now());
      headArrived(attempt, watch);
      readBody(response, attempt, resolve, fail);
      // Bytes after a complete response are an error of the connection, not of the response.
      call.on('error', (error) => response.complete || fail(error));
    });
    call.on('error', (error) => attempt.response ?? fail(error));
    call.once('close', () => attempt.response ?? fail(null));
    attempt.sent = 'maybe';
    send(call, request.body);
  });
}

function send(call: ClientRequest, body: Uint8Array | null): void {
  if (body === null) call.end();
  else call.end(body);
}

/** Host, Content-Length and Connection are set here. `agent` is not set: with `agent: false` the socket is ignored. */
function callOptions({ target, method, headers, body }: OutboundRequest, socket: TLSSocket) {
  const lines: Record<string, string> = Object.create(null);
  lines.host = target.origin.slice('https://'.length);
  for (const [name, value] of headers) lines[name] = value;
  lines['content-length'] = String(body?.length ?? 0);
  lines.connection = 'close';
  return {
    createConnection: () => socket,
    host: target.hostname,
    port: target.port,
    method,
    path: target.path,
    headers: lines,
    maxHeaderSize: LIMITS.responseHeaderBytes.max,
  };
}

function headArrived(attempt: Attempt, watch: Stopwatch): void {
  attempt.sent = 'yes';
  attempt.timings.ttfbMs ??= watch.lap();
}

function readHead(response: IncomingMessage, attempt: Attempt, nowMs: number): void {
  attempt.phase = 'body';
  attempt.status = response.statusCode ?? null;
  attempt.response = { body: [], bytes: 0, truncated: false };
  attempt.retryAfterMs = retryAfterMs(response.headers['retry-after'] ?? null, nowMs);
  const delivery = String(response.headers['webhook-delivery'] ?? '');
  attempt.abort = attempt.status === 410 || delivery.trim().toLowerCase() === 'abort-message';
}

function readBody(
  response: IncomingMessage,
  attempt: Attempt,
  done: () => void,
  fail: (error: unknown) => void,
): void {
  const read = attempt.response;
  if (read === null) return;
  response.on('data', (chunk: Buffer) => {
    const room = LIMITS.responseBodyBytes.max - read.bytes;
    const kept = chunk.subarray(0, room);
    if (kept.length > 0) read.body.push(kept);
    read.bytes += kept.length;
    if (chunk.length <= room) return;
    read.truncated = true;
    done();
    response.destroy();
  });
  response.once('end', () => (response.complete ? done() : fail(null)));
  response.on('error', fail);
  response.once('close', () => (response.complete ? done() : fail(null)));
}

/** Errors of TLS and of the parser have their own categories; any other error means that the connection ended too early. */
function failureOf(error: unknown): AttemptFailed {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') return new AttemptFailed('tls_error', error);
  if (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE') {
    return new AttemptFailed('protocol_error', error);
  }
  return new AttemptFailed('truncated_response', error);
}
