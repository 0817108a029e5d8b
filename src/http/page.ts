// A page for people: HTML and one style sheet inside it, nothing from anywhere else, readable without a script.
import { type Markup, markup } from './markup.ts';

export type Page = {
  readonly title: string;
  readonly content: Markup;
};

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1f2328}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dd{margin:0;overflow-wrap:anywhere}
td,th{text-align:left;padding:.15rem 1rem .15rem 0}li{overflow-wrap:anywhere}
.verified{color:#1a7f37}.failed{color:#cf222e}.running{color:#9a6700}`;

/** The one style sheet that the page's policy lets through (CSP level 3). */
const styleHash = crypto.subtle
  .digest('SHA-256', new TextEncoder().encode(STYLE))
  .then((hash) => `sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}`);

export async function page(
  status: number,
  { title, content }: Page,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const { markup: html } = markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><style>${{ markup: STYLE }}</style></head><body>${content}</body></html>
`;
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src '${await styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
      ...headers,
    },
  });
}
