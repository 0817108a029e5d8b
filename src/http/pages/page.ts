// A page for people: HTML and one style sheet inside it, nothing from anywhere else, readable without a script. The
// shell is the same everywhere: a link past the navigation, header with navigation, `main`, footer. What a page's content
// may use is listed in page.css.
import { linkHeader, textFile } from '#src/discovery/document.ts';
import { HTML_TYPE, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { sha256, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Publisher } from '#src/http/response/conditional-get.ts';
import { ON_EVERY_ANSWER } from '#src/http/response/json.ts';
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

type HeaderValues = Readonly<Record<string, string>>;

/** A page as it is sent. */
export type Rendered = { readonly text: string; readonly headers: HeaderValues };

/** `baseUrl`: PUBLIC_BASE_URL. `script`: text of the verifier, for pages that run it. */
export function pagesFrom(baseUrl: string, script = ''): (page: Page) => Rendered {
  const base = baseUrl.replace(/\/+$/, '');
  const link = linkHeader(base);
  const integrity = once(() => hashOf(script));
  return (page) => {
    const runs = page.verifies ? integrity() : null;
    const policy = policyOf(runs === null ? '' : scriptPolicy(runs, base));
    return {
      text: pageText(base, page, runs),
      headers: {
        'content-type': HTML_TYPE,
        link,
        'content-security-policy': policy,
        'referrer-policy': 'no-referrer',
      },
    };
  };
}

/** Of a page with live figures: a reload after a few seconds shows what came since. */
export const CACHE_BRIEFLY = { 'cache-control': 'public, max-age=5' } as const;

/** Keeps a page as bytes: each call returns a new response with the same content. */
export function prepared({ text, headers }: Rendered, further: HeaderValues): () => Response {
  const bytes = utf8(text);
  const init = { headers: new Headers({ ...ON_EVERY_ANSWER, ...headers, ...further }) };
  return () => new Response(bytes, init);
}

/** A page that changes only with a release or the configuration: it is rendered once, and has an entity tag. */
export function publishedPage(publish: Publisher, render: () => Rendered, further: HeaderValues) {
  const rendered = once(render);
  return publish(
    HTML_TYPE,
    () => rendered().text,
    () => ({ ...rendered().headers, ...further }),
  );
}

/** A page for one request. */
export const pageAnswer = (status: number, { text, headers }: Rendered, further: HeaderValues = {}) =>
  new Response(text, { status, headers: { ...headers, ...further } });

/** The whole document. `base`: without a slash at its end. `integrity`: of the script, where the page runs it. */
function pageText(
  base: string,
  { title, description, content, path, wide = false }: Page,
  integrity: string | null,
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

/** The one style sheet passes, and the icon. `script`: what passes besides. */
const policyOf = (script: string) =>
  `default-src 'none'; style-src '${styleHash()}';${script} img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/**
 * That one script by its hash (by its one address where a browser takes hashes of inline scripts only), what it asks this
 * relay for, and nothing that makes markup or code of text (CSP level 3, Trusted Types).
 */
const scriptPolicy = (integrity: string, base: string) =>
  ` script-src '${integrity}' ${base}${ROUTES.verifyScript.path}; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none';`;

const hashOf = (text: string) => `sha256-${btoa(String.fromCharCode(...sha256(utf8(text))))}`;

/** Without comments and white space that has no meaning. */
const style = once(() =>
  textFile(new URL('page.css', import.meta.url))
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,>]) ?/g, '$1')
    .replace(/: /g, ':')
    .trim(),
);
const styleHash = once(() => hashOf(style()));

export function once<T>(make: () => T): () => T {
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
