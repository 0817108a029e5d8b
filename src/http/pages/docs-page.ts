// The interface description as a page: made of the very document that the service serves, once.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { publisher } from '#src/http/response/conditional-get.ts';
import { type DocumentDeps, documentFacts } from '#src/http/routes/document-facts.ts';
import { anchorOf, type DescribedOperation, operationSection } from './docs-operation.ts';
import { type Markup, markup } from './markup.ts';
import { HTML, pagePolicy, pageText } from './page.ts';

/** As openapi.ts makes it, so far as the page shows it. */
type InterfaceDocument = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
};

type Operation = { readonly method: string; readonly path: string; readonly is: DescribedOperation };

/** `document`: the interface description as it is served. */
export function docsPageRoutes(deps: DocumentDeps, document: () => Promise<string>) {
  const facts = documentFacts(deps);
  const serve = publisher(facts)(HTML, async () =>
    pageText(facts.baseUrl, {
      title: `${SERVICE.name}: interface`,
      description: `Every operation of ${SERVICE.name}: parameters, bodies, answers and prices.`,
      path: ROUTES.docsPage.path,
      wide: true,
      content: contentOf(JSON.parse(await document()), facts.mode === 'demo'),
    }),
  );
  return new Elysia().get(
    ROUTES.docsPage.path,
    async ({ request }) => {
      const answer = await serve({ request });
      for (const [name, value] of Object.entries(await pagePolicy())) answer.headers.set(name, value);
      return answer;
    },
    unlisted,
  );
}

function contentOf({ openapi, paths }: InterfaceDocument, isDemo: boolean): Markup {
  const byTag = groupedByTag(paths);
  return markup`<h1>Interface</h1>
<p class="lead">Every operation, rendered from the OpenAPI ${openapi} description that machines read: <a href="${ROUTES.openapi.path}">${ROUTES.openapi.path}</a>.</p>
<p>Bodies are JSON, closed unless they say otherwise: an unknown member is refused. An operation is free unless a price stands beside it. ${
    isDemo
      ? 'This deployment runs in demo mode and charges nobody; prices hold where payment is enforced.'
      : markup`A paid operation answers 402 with its terms; <a href="${ROUTES.pricing.path}">pricing</a> tells when it is charged.`
  } Every error has the same body, shown <a href="#errors">at the end</a>.</p>
<div class="docs"><nav class="contents" aria-label="Operations">${[...byTag].map(contents)}</nav>
<div>${[...byTag].map(([tag, operations]) => section(tag, operations, isDemo))}${errors}</div></div>`;
}

function groupedByTag(paths: InterfaceDocument['paths']): ReadonlyMap<string, readonly Operation[]> {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, is]) => ({ method: method.toUpperCase(), path, is })),
  );
  const byTag = new Map<string, Operation[]>();
  for (const operation of operations) {
    const tag = operation.is.tags[0] ?? 'other';
    byTag.set(tag, [...(byTag.get(tag) ?? []), operation]);
  }
  return byTag;
}

const titleOf = (tag: string) => tag.charAt(0).toUpperCase() + tag.slice(1);

function contents([tag, operations]: readonly [string, readonly Operation[]]): Markup {
  const items = operations.map(({ method, path, is }) => {
    const isOnly = operations.filter((other) => other.is.summary === is.summary).length === 1;
    return markup`<li><a href="#${anchorOf(is)}">${is.summary}${isOnly ? '' : ` (${method} ${path})`}</a></li>`;
  });
  return markup`<p><a href="#tag-${tag}">${titleOf(tag)}</a></p><ul>${items}</ul>`;
}

function section(tag: string, operations: readonly Operation[], isDemo: boolean): Markup {
  const sections = operations.map(({ method, path, is }) => operationSection(method, path, is, isDemo));
  return markup`<section><h2 id="tag-${tag}">${titleOf(tag)}</h2>${sections}</section>`;
}

const errors = markup`<section><h2 id="errors">Errors</h2>
<p>Whatever is refused or fails answers with this body. <code>code</code> is for programs and stays as it is; <code>message</code> is for people and may change; <code>details</code> is there where it helps.</p>
<pre tabindex="0" role="region" aria-label="Body of an error"><code>${JSON.stringify({ error: { code: 'invalid_request', message: 'What is wrong.', details: {} } }, null, 2)}</code></pre></section>`;
