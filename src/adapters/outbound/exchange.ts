// One HTTP/1.1 request and its answer on a proven connection: read up to the cap, never decompressed.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { retryAfterMs } from '../../domain/job/retry-after.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { OutboundRequest } from '../../ports/outbound.ts';
import { type Attempt, AttemptFailed, type Stopwatch } from './attempt.ts';
import type { Deadline } from './deadline.ts';

/** Resolves when the answer is complete or reached the cap; rejects with `AttemptFailed`. */
export function exchange(
  request: OutboundRequest,
  socket: TLSSocket,
  attempt: Attempt,
  watch: Stopwatch,
  deadline: Deadline,
  now: () => number,
): Promise<void> {
  attempt.phase = 'request';
  return new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => reject(failureOf(error));
    deadline.onExpired(() => reject(new AttemptFailed('timeout')));
    const call = httpsRequest(callOptions(request, socket));
    call.once('finish', () => {
      if (attempt.phase === 'request') attempt.phase = 'headers';
    });
    call.on('information', () => headArrived(attempt, watch));
    call.once('upgrade', (answer) => {
      headArrived(attempt, watch);
      attempt.status = answer.statusCode ?? null;
      reject(new AttemptFailed('protocol_error'));
    });
    call.once('response', (answer) => {
      readHead(answer, attempt, now());
      headArrived(attempt, watch);
      readBody(answer, attempt, resolve, fail);
      // Bytes after a complete answer are an error of the connection, no longer of the answer.
      call.on('error', (error) => answer.complete || fail(error));
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

/** Host, Content-Length and Connection are ours; `agent` stays unset: with `agent: false` the socket is ignored. */
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

function readHead(answer: IncomingMessage, attempt: Attempt, nowMs: number): void {
  attempt.phase = 'body';
  attempt.status = answer.statusCode ?? null;
  attempt.response = { body: [], bytes: 0, truncated: false };
  attempt.retryAfterMs = retryAfterMs(answer.headers['retry-after'] ?? null, nowMs);
  const delivery = String(answer.headers['webhook-delivery'] ?? '');
  attempt.abort = attempt.status === 410 || delivery.trim().toLowerCase() === 'abort-message';
}

function readBody(
  answer: IncomingMessage,
  attempt: Attempt,
  done: () => void,
  fail: (error: unknown) => void,
): void {
  const response = attempt.response;
  if (response === null) return;
  answer.on('data', (chunk: Buffer) => {
    const room = LIMITS.responseBodyBytes.max - response.bytes;
    const kept = chunk.subarray(0, room);
    if (kept.length > 0) response.body.push(kept);
    response.bytes += kept.length;
    if (chunk.length <= room) return;
    response.truncated = true;
    done();
    answer.destroy();
  });
  answer.once('end', () => (answer.complete ? done() : fail(null)));
  answer.on('error', fail);
  answer.once('close', () => (answer.complete ? done() : fail(null)));
}

/** The parser's errors are the target's protocol; all others say that the connection ended too early. */
function failureOf(error: unknown): AttemptFailed {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') return new AttemptFailed('tls_error', error);
  if (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE') {
    return new AttemptFailed('protocol_error', error);
  }
  return new AttemptFailed('truncated_response', error);
}
