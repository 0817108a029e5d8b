// A page for people: HTML and one style sheet of this relay, nothing from anywhere else, readable without either. The
// shell is the same everywhere: a link past the navigation, header with navigation, `main`, footer. What a page's content
// may use is listed in page.css.
import { assetText } from '#src/assets.ts';
import { linkHeader } from '#src/discovery/document.ts';
import { HTML_TYPE, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { sha256, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Fault } from '#src/domain/refusal.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { keptBody, type Published, type Publisher } from '#src/http/response/conditional-get.ts';
import { refusalAnswer, STATUS } from '#src/http/response/errors.ts';
import { ON_EVERY_ANSWER } from '#src/http/response/json.ts';

/** HTML or SVG by template: what is put in is escaped, unless it is markup made here. */
export type Markup = { readonly markup: string };

type Part = string | number | Markup | readonly Markup[];

export function markup(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let whole = texts[0] ?? '';
  for (let i = 1; i < texts.length; i++) whole += shown(parts[i - 1] ?? '') + texts[i];
  return { markup: whole };
}

function shown(part: Part): string {
  if (typeof part === 'string' || typeof part === 'number') return escapeText(String(part));
  if ('markup' in part) return part.markup;
  return part.map(({ markup }) => markup).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeText(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '') : text;
}

export type Page = {
  readonly title: string;
  /** One sentence, for search engines and link previews. */
  readonly description: string;
  readonly content: Markup;
  /** The page's one address, without a host; absent where it has none (an error). */
  readonly path?: string;
  readonly wide?: boolean;
  /** It runs the pages' script: the verifier, copy buttons, the filter. All it says must be there without it, too. */
  readonly scripted?: boolean;
};

type HeaderValues = Readonly<Record<string, string>>;

export type Pages = {
  answer(status: number, page: Page, further?: HeaderValues): Response;
  /** Keeps a page as bytes: each call of what it returns is a new response with the same content. */
  prepared(page: Page, further: HeaderValues): () => Response;
  /** A page that changes only with a release or the configuration: it is rendered once, and has an entity tag. */
  published(publish: Publisher, page: () => Page, further: HeaderValues): Published;
};

/** `baseUrl`: PUBLIC_BASE_URL. `script`: text of the verifier, where some of the pages run it. */
export function pagesFrom(baseUrl: string, script = ''): Pages {
  const base = baseUrl.replace(/\/+$/, '');
  const integrity = hashOf(script);
  const headers = {
    'content-type': HTML_TYPE,
    link: linkHeader(base),
    'content-security-policy': policyOf(script === '' ? '' : scriptPolicy(integrity, base)),
    'referrer-policy': 'no-referrer',
  };
  const textOf = (page: Page) => pageText(base, page, page.scripted ? scriptOf(integrity) : NOTHING);
  return {
    answer: (status, page, further) =>
      new Response(textOf(page), { status, headers: { ...headers, ...further } }),
    prepared(page, further) {
      const content = keptBody(textOf(page));
      const init = { headers: new Headers({ ...ON_EVERY_ANSWER, ...headers, ...further }) };
      return () => new Response(content, init);
    },
    published: (publish, page, further) =>
      publish(HTML_TYPE, () => textOf(page()), { ...headers, ...further }),
  };
}

/** A page accepts only its own release's script: caches ask again each time, which costs a few bytes. */
export const ASK_AGAIN = { 'cache-control': 'no-cache' } as const;
export const CACHE_BRIEFLY = { 'cache-control': 'public, max-age=5' } as const;

/** The answer of a page to a request that it cannot read. `problem`: a sentence. */
export function unreadable(pages: Pages, problem: string, path: string): Response {
  const title = 'The address cannot be read';
  const content = markup`<h1>${title}</h1><p class="lead">${problem}</p><p><a href="${path}">The page with its usual values</a>.</p>`;
  return pages.answer(400, { title, description: title, content }, { 'cache-control': 'no-store' });
}

/** The answer to a browser at a path where there is nothing. */
export function nothingHere(pages: Pages): Response {
  const title = 'There is nothing at this address';
  const content = markup`<h1>${title}</h1>
<p class="lead">The address may be mistyped. What there is: <a href="${ROUTES.frontPage.path}">what this service does</a>, <a href="${ROUTES.docsPage.path}">its whole interface</a>, <a href="${ROUTES.verifyPage.path}">a page that verifies receipts</a> and <a href="${ROUTES.statusPage.path}">its status</a>.</p>`;
  return pages.answer(STATUS.route_not_found, { title, description: title, content });
}

export const isBrowser = ({ headers }: Request): boolean =>
  /\btext\/html\b/.test(headers.get('accept') ?? '');

/** The answer of a page whose records cannot be read now. */
export function unavailableAnswer(pages: Pages, { code, retryAfterSeconds }: Fault): Response {
  const title = 'The records are unavailable';
  const content = markup`<h1>${title}</h1>
<p class="lead">This page cannot be shown now. Nothing is lost: <a href="">reload the page</a> in a moment.</p>
<p>A receipt that you hold verifies without them, with the <a href="${ROUTES.jwks.path}">public keys</a>. Part by part: <a href="${ROUTES.health.path}">${ROUTES.health.path}</a>.</p>`;
  const headers = { 'cache-control': 'no-store', 'retry-after': String(retryAfterSeconds ?? 1) };
  return pages.answer(STATUS[code], { title, description: title, content }, headers);
}

/** What a browser gets instead of a page that it has asked for too often; any other client gets the error body. */
export const tooManyReads =
  (pages: Pages): Endpoint['refused'] =>
  (request, refusal) => {
    if (!isBrowser(request)) return refusalAnswer(refusal);
    const title = 'Too many reads';
    const wait = String(refusal.retryAfterSeconds ?? 1);
    const content = markup`<h1>${title}</h1>
<p class="lead">${refusal.message} <a href="">Reload the page</a> in ${wait} s.</p>`;
    const further = { 'cache-control': 'no-store', 'retry-after': wait };
    return pages.answer(STATUS.rate_limited, { title, description: title, content }, further);
  };

/** The style sheet of all pages. Their link to it contains its hash, so that a new release's is loaded at once. */
export const styleRoute = (publish: Publisher): Endpoint =>
  endpoint(
    ROUTES.styleSheet,
    null,
    publish(ROUTES.styleSheet.mediaType, () => STYLE),
  );

const NOTHING = markup``;

function pageText(base: string, page: Page, script: Markup): string {
  const { title, description, content, path, wide = false } = page;
  const canonical = path === undefined ? NOTHING : markup`<link rel="canonical" href="${base}${path}">`;
  const { markup: html } = markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><meta name="description" content="${description}">
<meta name="color-scheme" content="light dark">${canonical}${LINKS}${script}</head>
<body class="${wide ? 'wide' : ''}">${HEADER_START}${currentIn(NAVIGATION, path)}</ul></nav></div></header>
<main id="main" tabindex="-1">${content}</main>
${FOOTER}</body></html>
`;
  return html;
}

/** A module: it runs after the page is parsed. Its address contains its hash, so that no cache serves an old one. */
const scriptOf = (integrity: string) =>
  markup`<script type="module" src="${ROUTES.verifyScript.path}?${versionOf(integrity)}" integrity="${integrity}"></script>`;

const policyOf = (script: string) =>
  `default-src 'none'; style-src 'self';${script} img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/**
 * That one script by its hash (by its one address where a browser takes hashes of inline scripts only), what it asks this
 * relay for, and nothing that makes markup or code of text (CSP level 3, Trusted Types).
 */
const scriptPolicy = (integrity: string, base: string) =>
  ` script-src '${integrity}' ${base}${ROUTES.verifyScript.path}; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none';`;

const hashOf = (text: string) => `sha256-${btoa(String.fromCharCode(...sha256(utf8(text))))}`;

const versionOf = (hash: string) => hash.slice(7, 19).replace(/[+/]/g, '-');

const STYLE = assetText('src/http/pages/page.css');

type Entry = readonly [text: string, route: RouteFacts, anchor?: string];

export const RECENT_PROOFS = 'recent-proofs';

const entries = (list: readonly Entry[]): Markup =>
  markup`${list.map(
    ([text, { path }, anchor]) =>
      markup`<li><a href="${path}${anchor === undefined ? '' : `#${anchor}`}">${text}</a></li>`,
  )}`;

const NAVIGATION = entries([
  ['Proofs', ROUTES.frontPage, RECENT_PROOFS],
  ['Verify', ROUTES.verifyPage],
  ['Status', ROUTES.statusPage],
  ['Docs', ROUTES.docsPage],
]);

/** The entry of the page itself is marked. */
const currentIn = ({ markup }: Markup, path = ''): Markup => ({
  markup: markup.replace(`href="${path}"`, (link) => `${link} aria-current="page"`),
});

/** The mark: a call passes the relay and gets a seal. */
const MARK = markup`<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2"><circle cx="12" cy="12" r="6"/><path d="M0 12h6M18 12h6" /><path d="m9.5 12 1.8 1.8L14.8 10" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

const LINKS = markup`<link rel="icon" type="image/svg+xml" href="${ROUTES.favicon.path}"><link rel="stylesheet" href="${ROUTES.styleSheet.path}?${versionOf(hashOf(STYLE))}">`;

const HEADER_START = markup`<a class="skip" href="#main">Skip to content</a>
<header><div class="bar"><a class="brand" href="${ROUTES.frontPage.path}">${MARK}${SERVICE.name}</a>
<nav aria-label="Pages"><ul>`;

const FOOTER = markup`<footer><div class="foot"><nav aria-label="Documents"><ul>${entries([
  ['llms.txt', ROUTES.llms],
  ['OpenAPI', ROUTES.openapi],
  ['Quickstart', ROUTES.quickstart],
  ['Pricing', ROUTES.pricing],
  ['Public keys', ROUTES.jwks],
  ['All documents', ROUTES.discovery],
])}</ul></nav>
<p>${SERVICE.name} ${SERVICE.version}</p></div></footer>`;
