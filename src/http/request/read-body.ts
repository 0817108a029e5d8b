// Reads the body of a request within a size and a time.
import { type Refused, refused } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';

export type Unread = Refused<'body_too_large' | 'body_timeout' | 'invalid_json'>;

/** Counts the bytes while they arrive, whatever Content-Length states. What was not read stays on the connection: close it. */
export async function readBodyWithin(
  { headers, body }: Request,
  clock: Pick<Clock, 'sleep'>,
  { maxBytes, withinMs }: { readonly maxBytes: number; readonly withinMs: number },
): Promise<Uint8Array | Unread> {
  const tooLarge = () =>
    refused('body_too_large', `The body is over ${maxBytes / 1024} kB.`, { details: { maxBytes } });
  const tooLate = () => refused('body_timeout', `The body did not arrive within ${withinMs / 1000} seconds.`);
  if (Number(headers.get('content-length')) > maxBytes) return tooLarge();
  if (body === null) return new Uint8Array(0);
  const reader = body.getReader();
  const done = new Cancel();
  const late = clock.sleep(withinMs, done).then(() => 'late' as const);
  // Released, not cancelled: Deno treats a cancelled body as read to its end, and keeps the connection.
  const abandon = (refusal: Unread) => {
    reader.releaseLock();
    return refusal;
  };
  try {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for (let size = 0; ; ) {
      const step = await Promise.race([reader.read(), late]);
      if (step === 'late') return abandon(tooLate());
      if (step.done) return joined(chunks);
      size += step.value.byteLength;
      if (size > maxBytes) return abandon(tooLarge());
      chunks.push(step.value);
    }
  } catch {
    // The caller disconnected or broke the framing: its fault, and perhaps no one reads this answer.
    return refused('invalid_json', 'The body broke off.');
  } finally {
    done.abort();
  }
}

async function joined(chunks: readonly Uint8Array<ArrayBuffer>[]): Promise<Uint8Array> {
  const [only] = chunks;
  return only !== undefined && chunks.length === 1
    ? only
    : new Uint8Array(await new Blob([...chunks]).arrayBuffer());
}
