// Conditional GET (RFC 9110): entity tags, 304, and documents that are built once and served from memory.
import type { TSchema } from '@sinclair/typebox';
import { linkHeader } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { CACHE_SHORTLY, ON_EVERY_ANSWER } from './json.ts';

/** As a route's handler. */
export type Published = (context: { readonly request: Request }) => Response | Promise<Response>;

type Body = string | Uint8Array<ArrayBuffer>;

export type Publisher = (
  mediaType: string,
  build: () => Body | Promise<Body>,
  headers?: () => HeaderValues | Promise<HeaderValues>,
) => Published;

type HeaderValues = Readonly<Record<string, string>>;

/** The answers of a document in the interface description. */
export const documentAnswers = <S extends TSchema | string>(text: string, body: S) =>
  ({ 200: [text, body], 304: ['It is as the caller has it.', null] }) as const;

/**
 * A document changes only with a release or the configuration. It is built at the first request; its bytes, entity tag
 * and headers are kept. The tag leaves out `generatedAt`, so that every process of a deployment has the same one.
 */
export function publisher({ baseUrl, generatedAt }: Pick<Facts, 'baseUrl' | 'generatedAt'>): Publisher {
  const link = linkHeader(baseUrl);
  return (mediaType, build, headers = () => CACHE_SHORTLY) => {
    let served: Served | null = null;
    let built: Promise<Served> | null = null;
    const make = async (): Promise<Served> => {
      const body = await build();
      const etag = await weakTag(typeof body === 'string' ? body.replaceAll(generatedAt, '') : body);
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
      const whole = { ...ON_EVERY_ANSWER, 'content-type': mediaType, etag, link, ...(await headers()) };
      served = { bytes, whole, headers: new Headers(whole) };
      return served;
    };
    return ({ request }) => {
      if (served !== null) return answerOf(request, served);
      built ??= make().finally(() => {
        built = null;
      });
      return built.then((ready) => answerOf(request, ready));
    };
  };
}

type Served = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly whole: HeaderValues & { readonly etag: string };
  /** The same, as what is copied fastest. */
  readonly headers: Headers;
};

function answerOf(request: Request, { bytes, whole, headers }: Served): Response {
  return isKnown(request, whole.etag) ? unchanged(whole) : new Response(bytes, { headers });
}

/** An answer made for this request, with an entity tag of its bytes. */
export async function taggedAnswer(
  request: Request,
  body: Body,
  mediaType: string,
  headers: HeaderValues,
): Promise<Response> {
  const whole = { 'content-type': mediaType, ...headers, etag: await weakTag(body) };
  return isKnown(request, whole.etag) ? unchanged(whole) : new Response(body, { headers: whole });
}

function unchanged(whole: HeaderValues): Response {
  const { 'content-type': _, ...headers } = whole;
  return new Response(null, { status: 304, headers });
}

/** Weak: processes of one deployment answer the same but for the time at which each built it. */
async function weakTag(body: Body): Promise<string> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const hash = await crypto.subtle.digest('SHA-256', bytes);
  const hex = [...new Uint8Array(hash).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0'));
  return `W/"${hex.join('')}"`;
}

/** RFC 9110 §13.1.2: weak comparison with each of the list. */
function isKnown({ headers }: Request, etag: string): boolean {
  const ifNoneMatch = headers.get('if-none-match');
  if (ifNoneMatch === null) return false;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || opaque(tag) === opaque(etag));
}
