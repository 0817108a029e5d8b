// How relay pay speaks to a relay: whole answers, bounded in size and time, and no redirect followed: a payment goes to
// the address that was named and to no other.
import type { Send } from '#src/app/buyer.ts';

/** The longest that the service itself takes, and a little. */
const PATIENCE_MS = 130_000;
const MAX_BYTES = 4 * 1024 * 1024;

export const sendByFetch: Send = async (method, url, body, headers = {}) => {
  const response = await fetch(url, {
    method,
    headers: { accept: 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    size += part.length;
    if (size > MAX_BYTES) throw new Error(`${url} answers over ${MAX_BYTES} bytes`);
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    body: Buffer.concat(parts).toString('utf8'),
  };
};
