// One HTTP/1.1 request and its response on an authenticated connection. The body is read up to the limit and never
// decompressed.
import { createHash } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { isHeader } from '../../domain/destination/headers.ts';
import { retryAfterMs } from '../../domain/job/retry.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { OutboundRequest } from '../../ports/outbound.ts';
import { type Attempt, AttemptFailed } from './attempt.ts';
import { type ResponseHead, ResponseReader } from './response-reader.ts';

/** Resolves when the response is complete or has reached the limit; rejects with `AttemptFailed`. */
export function exchange(
  request: OutboundRequest,
  socket: TLSSocket,
  attempt: Attempt,
  now: () => number,
): Promise<void> {
  attempt.phase = 'request';
  const bytes = requestBytes(request);
  return new Promise<void>((resolve, reject) => {
    const reader = new ResponseReader({
      head(head) {
        attempt.sent = 'yes';
        attempt.timings.ttfbMs ??= attempt.lap();
        if (head.status >= 200) readHead(head, attempt, now());
        else if (head.status === 101) {
          attempt.status = head.status;
          throw new AttemptFailed('protocol_error');
        }
      },
      body(chunk) {
        if (keepBody(chunk, attempt)) resolve();
      },
    });
    const fail = (error: unknown) => reject(failureOf(error));
    socket.on('data', (chunk: Buffer) => {
      try {
        if (reader.read(chunk)) resolve();
      } catch (error) {
        reject(error);
      }
    });
    socket.once('end', () => (reader.isCompleteAtEnd() ? resolve() : fail(null)));
    socket.on('error', fail);
    socket.once('close', () => fail(null));
    attempt.sent = 'maybe';
    socket.write(bytes, () => {
      if (attempt.phase === 'request') attempt.phase = 'headers';
    });
  });
}

/** Host, Content-Length and Connection are set here. Throws if the head cannot be written as HTTP. */
function requestBytes({ target, method, headers, body }: OutboundRequest): Buffer {
  let head = `${method} ${target.path} HTTP/1.1\r\nhost: ${target.origin.slice('https://'.length)}\r\n`;
  if (!/^[A-Z]+ [\x21-\x7e]+ HTTP\/1\.1\r\nhost: [\x21-\x7e]+\r\n$/.test(head))
    throw new TypeError('the request line cannot be written');
  for (const [name, value] of headers) {
    if (!isHeader(name, value)) throw new TypeError('a header cannot be written');
    head += `${name}: ${value}\r\n`;
  }
  head += `content-length: ${body?.length ?? 0}\r\nconnection: close\r\n\r\n`;
  const start = Buffer.from(head, 'latin1');
  return body === null ? start : Buffer.concat([start, body]);
}

function readHead({ status, headers }: ResponseHead, attempt: Attempt, nowMs: number): void {
  attempt.phase = 'body';
  attempt.status = status;
  attempt.body = { hash: createHash('sha256'), bytes: 0 };
  attempt.retryAfterMs = retryAfterMs(headers.get('retry-after') ?? null, nowMs);
  attempt.abort = status === 410 || headers.get('webhook-delivery')?.toLowerCase() === 'abort-message';
}

/** Returns true if the limit is exceeded. */
function keepBody(chunk: Buffer, attempt: Attempt): boolean {
  const { body, truncated } = attempt;
  if (body === null || truncated) return true;
  const kept = chunk.subarray(0, LIMITS.responseBodyBytes.max - body.bytes);
  // Hashed at once: a kept slice would hold the whole received buffer, framing of chunks included.
  body.hash.update(kept);
  body.bytes += kept.length;
  attempt.truncated = kept.length < chunk.length;
  return attempt.truncated;
}

/** An error of TLS has its own category; any other error means that the connection ended too early. */
function failureOf(error: unknown): AttemptFailed {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isTls = code.startsWith('ERR_SSL') || code === 'EPROTO';
  return new AttemptFailed(isTls ? 'tls_error' : 'truncated_response', error);
}
