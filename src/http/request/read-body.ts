// The body's bytes, counted while they come in, whatever Content-Length says, and within a time.
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Call } from './request-context.ts';

export type BodyLimits = { readonly maxBytes: number; readonly arrivalMs: number };

type Unread = Refused<'body_too_large' | 'body_timeout' | 'invalid_json'>;

/** What was not read stays on the connection: it cannot carry another request, so it is closed after the answer. */
export async function readBody(
  request: Request,
  call: Call,
  clock: Clock,
  limits: BodyLimits,
): Promise<Uint8Array | Unread> {
  const read = await readWithin(request, clock, limits);
  if ('refused' in read) call.headers.set('connection', 'close');
  return read;
}

async function readWithin(request: Request, clock: Clock, limits: BodyLimits): Promise<Uint8Array | Unread> {
  if (Number(request.headers.get('content-length')) > limits.maxBytes) return tooLarge(limits);
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader();
  const done = new AbortController();
  const late = clock.sleep(limits.arrivalMs, done.signal).then(() => 'late' as const);
  try {
    const chunks: Uint8Array[] = [];
    for (let size = 0; ; ) {
      const step = await Promise.race([reader.read(), late]);
      if (step === 'late') return abandoned(reader, tooLate(limits));
      if (step.done) return joined(chunks, size);
      size += step.value.byteLength;
      if (size > limits.maxBytes) return abandoned(reader, tooLarge(limits));
      chunks.push(step.value);
    }
  } catch {
    // The caller is gone or broke the framing: its fault, and nobody may be left to read this.
    return refused('invalid_json', 'The body broke off.');
  } finally {
    done.abort();
  }
}

/**
 * Let go of, not cancelled: Deno takes a cancelled body for one that was read to its end, and keeps the connection.
 */
function abandoned(reader: { releaseLock(): void }, refusal: Unread): Unread {
  reader.releaseLock();
  return refusal;
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

const tooLarge = ({ maxBytes }: BodyLimits) =>
  refused('body_too_large', `The body is over ${maxBytes / 1024} kB.`, { details: { maxBytes } });

const tooLate = ({ arrivalMs }: BodyLimits) =>
  refused('body_timeout', `The body did not arrive within ${arrivalMs / 1000} seconds.`);
