// The addresses that a document, page or header names, whatever its form.

/** What is promised of an address: a call by that method is answered. null: of no method in particular. */
export type Named = { readonly address: string; readonly method: 'GET' | 'POST' | null };

/** RFC 8288, as far as this service writes it. */
export const linksOf = (header: string | null): Named[] =>
  [...(header ?? '').matchAll(/<([^>]+)>/g)].map(([, address = '']) => ({ address, method: 'GET' }));

/** `href` and `src` are addresses that answer GET; addresses in the text are read as text. */
export function namedInHtml(html: string): Named[] {
  const attributes = [...html.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(
    ([, address = '']) => ({ address: unescaped(address), method: 'GET' }) as const,
  );
  return [...attributes, ...namedInText(unescaped(html.replace(/<[^>]*>/g, ' ')))];
}

/** `GET /path`, `POST https://…` and every absolute address. */
export function namedInText(text: string): Named[] {
  const calls = [...text.matchAll(/\b(GET|POST) ((?:https?:\/)?\/[^\s"'`<>|\\)\],]*)/g)].map(
    ([, method, address = '']) => ({ method: method === 'GET' ? 'GET' : 'POST', address }) as const,
  );
  const others = [...text.matchAll(/https?:\/\/[^\s"'`<>|\\)\],]+/g)].map(([address]) => ({
    address,
    method: null,
  }));
  return [...calls, ...others].map((named) => ({ ...named, address: named.address.replace(/[.,;:]+$/, '') }));
}

/** A path alone, as JSON members name addresses of ours. */
const PATH = /^\/([A-Za-z.{][^\s]*)?$/;

/** Of JSON: what its strings name; `path` and `address` promise the object's `method`. */
export function namedInJson(value: unknown): Named[] {
  if (typeof value === 'string')
    return PATH.test(value) ? [{ address: value, method: null }] : namedInText(value);
  if (Array.isArray(value)) return value.flatMap(namedInJson);
  if (typeof value !== 'object' || value === null) return [];
  const members = Object.entries(value);
  const method = members.find(([name]) => name === 'method')?.[1];
  return members.flatMap(([name, member]) =>
    (name === 'path' || name === 'address') && (method === 'GET' || method === 'POST')
      ? [{ address: String(member), method }]
      : namedInJson(member),
  );
}

const unescaped = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
