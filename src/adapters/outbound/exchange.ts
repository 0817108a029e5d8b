// One HTTP/1.1 request and its response on an authenticated connection. The body is read up to the limit and never
// decompressed.
import { setImmediate } from 'node:timers';
import { isHeader } from '../../domain/destination/headers.ts';
import { isSuccess, retryAfterMs } from '../../domain/job/retry.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { OutboundRequest } from '../../ports/outbound.ts';
import { type Attempt, AttemptFailed, invalidResponse, isLanguageError } from './attempt.ts';
import { BodyCopy } from './body-copy.ts';
import { BodyHash } from './body-hash.ts';
import type { Connection } from './connection.ts';
import { exchangeFailure } from './failure.ts';
import { type ResponseHead, ResponseReader } from './response-reader.ts';

/** Resolves when the response is complete or has reached the limit; rejects with `AttemptFailed`. */
export function exchange(
  request: OutboundRequest,
  { socket, stream }: Pick<Connection, 'socket' | 'stream'>,
  attempt: Attempt,
  { keptHeaders, now }: { readonly keptHeaders: readonly string[]; readonly now: () => number },
): Promise<void> {
  attempt.phase = 'request';
  const bytes = requestBytes(request);
  const kept = request.keepsResponse === true ? keptHeaders : null;
  return new Promise<void>((resolve, reject) => {
    const complete = () => {
      stream.intake.stop();
      resolve();
    };
    const fail = (error: unknown) => {
      stream.intake.stop();
      reject(error);
    };
    /** Bytes of the request wait for the kernel. */
    let isUnsent = false;
    const reader = new ResponseReader({
      head(head) {
        // A server may refuse a request that it has not read to its end (RFC 9112 9.5), but not have carried it out.
        if (isUnsent && isSuccess(head.status)) throw invalidResponse('response_before_request');
        attempt.sent = 'yes';
        attempt.timings.ttfbMs ??= attempt.lap();
        if (head.status >= 200) readHead(head, attempt, now(), kept);
        else if (head.status === 101) {
          attempt.status = head.status;
          throw invalidResponse('protocol_switched');
        }
      },
      body(block, start, end) {
        if (keepBody(attempt, block, start, end)) complete();
      },
    });
    const before = stream.intake.received;
    const read = (block: Buffer) => {
      try {
        if (reader.read(block)) complete();
      } catch (error) {
        fail(error);
      }
    };
    /** Blocks that arrived while bytes of the request waited for the kernel; null: none wait. */
    let early: Buffer[] | null = null;
    // The kernel may have taken them by now, and only its report be missing.
    const judgeEarly = () => {
      if (early === null) return;
      const blocks = early;
      early = null;
      isUnsent = stream.writableLength > 0;
      for (const block of blocks) read(block);
    };
    socket.on('data', (block: Buffer) => {
      // It arrived before the request was written, so it does not answer it.
      if (stream.intake.passedOn <= before) fail(invalidResponse('response_before_request'));
      else if (early !== null) early.push(block);
      else if (attempt.phase !== 'body' && stream.writableLength > 0) {
        early = [block];
        setImmediate(judgeEarly);
      } else read(block);
    });
    socket.once('end', () => {
      judgeEarly();
      if (!reader.isCompleteAtEnd()) return fail(failureOf(null));
      // Without close_notify the end is that of the connection below.
      if (reader.endsWithConnection() && stream.hasEnded) attempt.truncated = 'unknown';
      complete();
    });
    const lost = (error: unknown) => {
      judgeEarly();
      fail(failureOf(error));
    };
    socket.on('error', lost);
    socket.once('close', () => lost(null));
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

/** `kept`: the headers that are kept; null: nothing is. */
function readHead(
  { status, headers }: ResponseHead,
  attempt: Attempt,
  nowMs: number,
  kept: readonly string[] | null,
): void {
  attempt.phase = 'body';
  attempt.status = status;
  attempt.body = new BodyHash();
  if (kept !== null) {
    const present = [...headers].filter(([name]) => kept.includes(name));
    attempt.kept = { status, headers: Object.fromEntries(present), body: new BodyCopy() };
  }
  attempt.retryAfterMs = retryAfterMs(headers.get('retry-after') ?? null, nowMs);
  attempt.abort = status === 410 || headers.get('webhook-delivery')?.toLowerCase() === 'abort-message';
}

/** Returns true if the limit is exceeded. */
function keepBody(attempt: Attempt, block: Buffer, start: number, end: number): boolean {
  const { body } = attempt;
  if (body === null || attempt.truncated) return true;
  const limit = Math.min(end, start + LIMITS.responseBodyBytes.max - body.bytes);
  body.add(block, start, limit);
  attempt.kept?.body.add(block, start, limit);
  attempt.truncated = limit < end;
  return attempt.truncated;
}

/** A defect of this program is returned as it is. */
const failureOf = (error: unknown): unknown =>
  error instanceof AttemptFailed || isLanguageError(error) ? error : exchangeFailure(error);
