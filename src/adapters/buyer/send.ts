// Sends the buyer's requests, limited in time and in size, without following redirects: a payment goes to the address that
// was named and to no other.

/** One HTTP request and its complete answer; rejects if none came. Redirects are not followed. */
export type Send = (request: Request) => Promise<Response>;

/** The answer exceeds a limit. The message is for a person. */
export class AnswerRefused extends Error {}

export type SendLimits = { readonly timeoutMs: number; readonly maxBytes: number };

/** `timeoutMs`: longer than the longest execution. */
const STANDARD: SendLimits = { timeoutMs: 130_000, maxBytes: 4 * 1024 * 1024 };

export const limitedSend =
  ({ timeoutMs, maxBytes }: SendLimits = STANDARD): Send =>
  async (request) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(request, { redirect: 'manual', signal });
      const body = await limitedBody(response, maxBytes);
      const { status, headers } = response;
      return new Response(body.length === 0 ? null : body, { status, headers });
    } catch (cause) {
      if (!signal.aborted) throw cause;
      throw new AnswerRefused(`no complete answer within ${timeoutMs / 1000} s`, { cause });
    }
  };

/** Throws if the body is longer; the rest is not read. */
async function limitedBody({ body }: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of (body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    size += part.length;
    if (size > maxBytes) throw new AnswerRefused(`an answer of more than ${maxBytes} bytes`);
  }
  return Buffer.concat(parts);
}
