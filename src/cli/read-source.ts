// Reads a source that the user names (a file, `-` for standard input, a URL), limited in size and time.

import { createReadStream } from 'node:fs';
import { collected } from '#src/lib/collected.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { parsedJson } from '../domain/canonical-json.ts';
import { CannotRun } from './exit.ts';

/** A receipt or key set is a few kilobytes long. */
const MAX_BYTES = 1024 * 1024;
const FETCH_MS = 15_000;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** UTF-8 text of the source. Throws `CannotRun`. */
export async function readSource(source: string): Promise<string> {
  const bytes = isUrl(source) ? await fetched(source) : await limited(source, opened(source));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new CannotRun(`${nameOf(source)} is not UTF-8 text`);
  }
}

/** The parsed JSON of the source. Throws `CannotRun`. */
export async function readJsonSource(source: string): Promise<unknown> {
  const value = parsedJson(await readSource(source));
  if (value === undefined) throw new CannotRun(`${nameOf(source)} is not JSON`);
  return value;
}

export const nameOf = (source: string): string => (source === '-' ? 'standard input' : source);

const opened = (source: string): AsyncIterable<Uint8Array> =>
  source === '-' ? process.stdin : createReadStream(source, { end: MAX_BYTES });

async function fetched(url: string): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url, {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(FETCH_MS),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
  if (response.body === null || !response.ok) {
    await response.body?.cancel();
    throw new CannotRun(`${url} answered ${response.status}`);
  }
  return limited(url, response.body as AsyncIterable<Uint8Array>);
}

async function limited(source: string, chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let bytes: Uint8Array | null;
  try {
    bytes = await collected(chunks, MAX_BYTES);
  } catch (error) {
    throw isUrl(source) ? unreachable(source, error) : unreadableSource(source, error);
  }
  if (bytes === null)
    throw new CannotRun(`${nameOf(source)} is larger than 1 MiB, the limit for a receipt or key set`);
  return bytes;
}

export function unreadableSource(source: string, cause: unknown): CannotRun {
  const code = systemCode(cause);
  const problems: Record<string, string> = {
    ENOENT: 'does not exist',
    EISDIR: 'is a folder',
    EACCES: 'cannot be read: permission denied',
  };
  const problem = problems[code ?? ''] ?? `cannot be read (${code ?? 'unknown'})`;
  return new CannotRun(`${nameOf(source)} ${problem}`, { cause });
}

function unreachable(url: string, cause: unknown): CannotRun {
  const timedOut = cause instanceof Error && cause.name === 'TimeoutError';
  const problem = timedOut ? `did not answer within ${FETCH_MS / 1000} s` : 'cannot be reached';
  return new CannotRun(`${url} ${problem}`, { cause });
}
