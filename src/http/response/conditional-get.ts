// Conditional GET (RFC 9110): entity tags, 304, and documents that are built once and served from memory.
import type { TSchema } from '@sinclair/typebox';
import { linkHeader } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { CACHE_SHORTLY, ON_EVERY_ANSWER } from './json.ts';

export type Published = (context: { readonly request: Request }) => Response;

type Body = string | Uint8Array<ArrayBuffer>;
type HeaderValues = Readonly<Record<string, string>>;

export type Publisher = (mediaType: string, build: () => Body, headers?: HeaderValues) => Published;

export const documentAnswers = <S extends TSchema | string>(text: string, body: S) =>
  ({ 200: [text, body], 304: ['It is as the caller has it.', null] }) as const;

/**
 * A document changes only with a release or the configuration. It is built at the first request; its bytes, entity tag
 * and headers are kept. The tag leaves out `generatedAt`, so that every process of a deployment has the same one.
 */
export function publisher({ baseUrl, generatedAt }: Pick<Facts, 'baseUrl' | 'generatedAt'>): Publisher {
  const link = linkHeader(baseUrl);
  return (mediaType, build, headers = CACHE_SHORTLY) => {
    let served: Served | null = null;
    const make = (): Served => {
      const body = build();
      const etag = weakTag(typeof body === 'string' ? body.replaceAll(generatedAt, '') : body);
      const whole = { ...ON_EVERY_ANSWER, 'content-type': mediaType, etag, link, ...headers };
      return { content: keptBody(body), whole, headers: new Headers(whole) };
    };
    return ({ request }) => {
      served ??= make();
      const { content, whole, headers } = served;
      return isKnown(request, whole.etag) ? unchanged(whole) : new Response(content, { headers });
    };
  };
}

/** For many answers: Bun copies bytes into each, but not a Blob; Deno sends a Blob in chunks, without its length. */
export const keptBody = (body: Body) => ('Bun' in globalThis ? new Blob([body]) : bytesOf(body));

type Served = {
  readonly content: ReturnType<typeof keptBody>;
  readonly whole: HeaderValues & { readonly etag: string };
  /** The same, as what is copied fastest. */
  readonly headers: Headers;
};

export function taggedAnswer(
  request: Request,
  body: Body,
  mediaType: string,
  headers: HeaderValues,
): Response {
  const whole = { 'content-type': mediaType, ...headers, etag: weakTag(body) };
  return isKnown(request, whole.etag) ? unchanged(whole) : new Response(body, { headers: whole });
}

function unchanged(whole: HeaderValues): Response {
  const { 'content-type': _, ...headers } = whole;
  return new Response(null, { status: 304, headers });
}

const bytesOf = (body: Body) => (typeof body === 'string' ? utf8(body) : body);

/** Weak: processes of one deployment answer the same but for the time at which each built it. */
const weakTag = (body: Body): string => `W/"${toHex(sha256(bytesOf(body)).subarray(0, 16))}"`;

/** RFC 9110 §13.1.2: weak comparison with each of the list. */
function isKnown({ headers }: Request, etag: string): boolean {
  const ifNoneMatch = headers.get('if-none-match');
  if (ifNoneMatch === null) return false;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || opaque(tag) === opaque(etag));
}
