// From bytes to a value that fits its schema, or the refusal that says why not (contract: strict, never repaired).
import type { Static, TSchema } from '@sinclair/typebox';
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { SchemaCheck } from './schema-check.ts';
import { parseStrictJson } from './strict-json.ts';
import { type InvalidRequest, invalidRequest } from './validation-error.ts';

export type BodyRefused = InvalidRequest | Refused<'invalid_json' | 'unsupported_media_type'>;

export type Body<T> = { readonly value: T } | BodyRefused;

export function readJson<S extends TSchema>(
  bytes: Uint8Array,
  headers: Headers,
  check: SchemaCheck<S>,
  maxDepth?: number,
): Body<Static<S>> {
  if (bytes.byteLength === 0) return refused('invalid_json', 'A JSON body is required.');
  if (!isJson(headers)) {
    return refused('unsupported_media_type', 'Send the body as application/json in UTF-8, not encoded.');
  }
  const text = utf8Text(bytes);
  const parsed = text === null ? ({ outcome: 'syntax' } as const) : parseStrictJson(text, maxDepth);
  if (parsed.outcome === 'syntax') return refused('invalid_json', 'The body is not JSON in UTF-8.');
  if (parsed.outcome === 'faults') return invalidRequest(parsed.faults);
  return check.matches(parsed.value) ? { value: parsed.value } : invalidRequest(check.faults(parsed.value));
}

function isJson(headers: Headers): boolean {
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding.trim().toLowerCase() !== 'identity') return false;
  const [type = '', ...parameters] = (headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') return false;
  const charset = parameters
    .map((part) => part.trim().toLowerCase())
    .find((part) => part.startsWith('charset='));
  return charset === undefined || /^charset="?utf-?8"?$/.test(charset);
}

function utf8Text(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
