// A page for people: HTML and one style sheet inside it, nothing from anywhere else, readable without a script. The
// shell is the same everywhere: a link past the navigation, header with navigation, `main`, footer.
//
// A page's content starts with its one `h1`. What it may use of the style sheet (page.css):
// - text: `p.lead` (opening sentence), `.muted`, `p.note` (small print), `pre > code`, `pre.wrap` (lines that break)
// - `dl.facts` (name and value), `dl.tiles > div > dt + dd` (figures at a glance), `.cards > .card` (h3, text, list)
// - tables as they are, `.num` for figures; a wide one in `div.scroll` with role="region", tabindex="0", aria-label
// - one word on a state: `span.pill` with `verified`, `succeeded`, `ok`; `failed`, `bad`; `running`, `attention`, `warn`
//   (without `pill`: the colour alone, never the only sign)
// - drawings: `figure.plot > svg[viewBox] + figcaption`, as wide as the page; `stroke-` and `fill-` with a colour's name
//   (`stroke-ok`, `fill-grid`; `stroke="var(--ok)"` works too), so that they follow light and dark; text in them is
//   muted and 12 units high; `span.key.ok` before a word is a legend's square
// - `details > summary`; fields: `label`, `textarea`, `input`, `fieldset > legend`, `button`; `div.drop` around one that takes
//   files
// A `style` attribute or element does not pass the page's policy.

import { HTML_TYPE } from '#src/discovery/document.ts';
import { textFile } from '#src/discovery/release-file.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { linkHeader } from '#src/discovery/service-links.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { type Markup, markup } from './markup.ts';

export type Page = {
  readonly title: string;
  /** One sentence, for search engines and link previews. */
  readonly description: string;
  readonly content: Markup;
  /** The page's one address, without a host; absent where it has none (an error). */
  readonly path?: string;
  /** For tables and drawings: 72 rem instead of 48. */
  readonly wide?: boolean;
  /** It runs the verifier. All it says must be there without it, too. */
  readonly verifies?: boolean;
};

export type PageAnswer = (
  status: number,
  page: Page,
  headers?: Readonly<Record<string, string>>,
) => Promise<Response>;

/**
 * `baseUrl`: PUBLIC_BASE_URL. Made once, when the routes are: `const page = pagesFrom(deps.settings.baseUrl)`. `script`:
 * text of the verifier, for pages that run it.
 */
export function pagesFrom(baseUrl: string, script = ''): PageAnswer {
  const base = baseUrl.replace(/\/+$/, '');
  const link = linkHeader(base);
  const hash = hashOf(script);
  return async (status, page, headers = {}) => {
    const integrity = page.verifies ? await hash : null;
    const runs = integrity === null ? null : { integrity, url: `${base}${ROUTES.verifyScript.path}` };
    return new Response(pageText(base, page, integrity), {
      status,
      headers: { 'content-type': HTML_TYPE, link, ...(await pagePolicy(runs)), ...headers },
    });
  };
}

/** Keeps a response as bytes: each call returns a new one with the same content. */
export async function prepared(answer: Promise<Response>): Promise<() => Response> {
  const response = await answer;
  const bytes = await response.arrayBuffer();
  const init = { status: response.status, headers: Object.fromEntries(response.headers) };
  return () => new Response(bytes, init);
}

/** The whole document. `base`: without a slash at its end. `integrity`: of the script, where the page runs it. */
export function pageText(
  base: string,
  { title, description, content, path, wide = false }: Page,
  integrity: string | null = null,
): string {
  const canonical = path === undefined ? '' : markup`<link rel="canonical" href="${base}${path}">`;
  const { markup: html } = markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><meta name="description" content="${description}">
<meta name="color-scheme" content="light dark">${canonical}<link rel="icon" type="image/svg+xml" href="${ROUTES.favicon.path}">
<style>${{ markup: style() }}</style>${integrity === null ? '' : scriptOf(integrity)}</head>
<body class="${wide ? 'wide' : ''}"><a class="skip" href="#main">Skip to content</a>
<header><div class="bar"><a class="brand" href="${ROUTES.frontPage.path}">${MARK}${SERVICE.name}</a>
<nav aria-label="Pages"><ul>${NAVIGATION.map((entry) => navigationLink(entry, path))}</ul></nav></div></header>
<main id="main" tabindex="-1">${content}</main>
<footer><div class="foot"><nav aria-label="Documents"><ul>${FOOTER.map((entry) => navigationLink(entry, path))}</ul></nav>
<p>${SERVICE.name} ${SERVICE.version}</p></div></footer></body></html>
`;
  return html;
}

/** A module: it runs after the page is parsed. Its address contains its hash, so that no cache serves an old one. */
const scriptOf = (integrity: string) =>
  markup`<script type="module" src="${ROUTES.verifyScript.path}?${integrity.slice(7, 19).replace(/[+/]/g, '-')}" integrity="${integrity}"></script>`;

/**
 * The one style sheet that passes, and the icon; where a script runs, that one by its hash (by its one address where a
 * browser takes hashes of inline scripts only), what it asks this relay for, and nothing that makes markup or code of
 * text (CSP level 3, Trusted Types).
 */
export async function pagePolicy(
  runs: { readonly integrity: string; readonly url: string } | null = null,
): Promise<Readonly<Record<string, string>>> {
  const script =
    runs === null
      ? ''
      : ` script-src '${runs.integrity}' ${runs.url}; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none';`;
  return {
    'content-security-policy': `default-src 'none'; style-src '${await styleHash()}';${script} img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'no-referrer',
  };
}

async function hashOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}`;
}

const sheet = textFile(new URL('page.css', import.meta.url));

/** Without comments and white space that has no meaning. */
const style = once(() =>
  sheet()
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,>]) ?/g, '$1')
    .replace(/: /g, ':')
    .trim(),
);
const styleHash = once(() => hashOf(style()));

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

type Entry = readonly [text: string, route: RouteFacts, anchor?: string];

/** Where the front page lists the recent proofs. */
export const RECENT_PROOFS = 'recent-proofs';

const NAVIGATION: readonly Entry[] = [
  ['Home', ROUTES.frontPage],
  ['Recent proofs', ROUTES.frontPage, RECENT_PROOFS],
  ['Verify', ROUTES.verifyPage],
  ['Status', ROUTES.statusPage],
  ['Docs', ROUTES.docsPage],
];

const FOOTER: readonly Entry[] = [
  ['llms.txt', ROUTES.llms],
  ['OpenAPI', ROUTES.openapi],
  ['Quickstart', ROUTES.quickstart],
  ['Pricing', ROUTES.pricing],
  ['Public keys', ROUTES.jwks],
  ['All documents', ROUTES.discovery],
];

function navigationLink([text, { path }, anchor]: Entry, here: string | undefined): Markup {
  if (anchor !== undefined) return markup`<li><a href="${path}#${anchor}">${text}</a></li>`;
  const current = path === here ? { markup: ' aria-current="page"' } : '';
  return markup`<li><a href="${path}"${current}>${text}</a></li>`;
}

/** The mark: a call passes the relay and gets a seal. */
const MARK = markup`<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke-width="2" class="stroke-accent"><circle cx="12" cy="12" r="6"/><path d="M0 12h6M18 12h6" /><path d="m9.5 12 1.8 1.8L14.8 10" stroke-linecap="round" stroke-linejoin="round"/></svg>`;
