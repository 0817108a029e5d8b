// A document that changes only with a release or the configuration: made once, served with an entity tag (RFC 9110).
import type { TSchema } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { linkHeader } from '#src/discovery/link-header.ts';
import { CACHE_SHORTLY } from './json.ts';

/** As a route's handler. */
export type Published = (context: { readonly request: Request }) => Promise<Response>;

export type Publisher = (mediaType: string, text: () => string | Promise<string>) => Published;

/** The answers of one that is described. */
export const documentAnswers = <S extends TSchema | string>(text: string, body: S) =>
  ({ 200: [text, body], 304: ['It is as the caller has it.', null] }) as const;

type Made = { readonly text: string; readonly etag: string };

export function publisher({ baseUrl, generatedAt }: Pick<Facts, 'baseUrl' | 'generatedAt'>): Publisher {
  const link = linkHeader(baseUrl);
  return (mediaType, text) => {
    let made: Promise<Made> | undefined;
    const make = async (): Promise<Made> => {
      const whole = await text();
      return { text: whole, etag: await weakTag(whole.replaceAll(generatedAt, '')) };
    };
    return async ({ request }) => {
      made ??= make().catch((cause: unknown) => {
        made = undefined;
        throw cause;
      });
      const document = await made;
      const headers = { etag: document.etag, link, ...CACHE_SHORTLY };
      return answerUnlessKnown(request, document.text, mediaType, headers);
    };
  };
}

/** An answer made for this request, with an entity tag of its bytes. */
export async function taggedAnswer(
  request: Request,
  body: string | Uint8Array<ArrayBuffer>,
  mediaType: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  return answerUnlessKnown(request, body, mediaType, { ...headers, etag: await weakTag(body) });
}

function answerUnlessKnown(
  request: Request,
  body: string | Uint8Array<ArrayBuffer>,
  mediaType: string,
  headers: Readonly<Record<string, string>> & { readonly etag: string },
): Response {
  if (isKnown(request.headers.get('if-none-match'), headers.etag)) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(body, { headers: { 'content-type': mediaType, ...headers } });
}

/** Weak: processes of one deployment say the same, but for the time at which each made it. */
async function weakTag(body: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const hash = await crypto.subtle.digest('SHA-256', bytes);
  const hex = [...new Uint8Array(hash).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0'));
  return `W/"${hex.join('')}"`;
}

/** RFC 9110 §13.1.2: weak comparison with each of the list. */
function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || opaque(tag) === opaque(etag));
}
