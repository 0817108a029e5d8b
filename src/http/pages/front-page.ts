// The front page: what the service is, what it costs, how to try it, and the newest proofs.
import type { ProofRecord } from '#projections/proof/query.ts';
import { type Snippet, snippet } from '#src/discovery/documents/snippets.ts';
import { type Facts, networkName } from '#src/discovery/facts.ts';
import { pathTemplate, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { LIMITS, METHODS, SERVICE } from '#src/domain/limits.ts';
import type { ReadsOf } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
import type { Logger } from '#src/ports/logger.ts';
import { CACHE_BRIEFLY, type Markup, markup, pagesFrom, RECENT_PROOFS, tooManyReads } from './page.ts';

export type FrontPageDeps = Moment &
  ReadsOf<'proof'> & { readonly logger: Logger; readonly verifyScript: string };

export function frontPageRoutes(deps: FrontPageDeps, facts: Facts): Endpoint[] {
  const { reads } = deps;
  const pages = pagesFrom(facts.baseUrl, deps.verifyScript);
  const logFailure = failureLog(deps);
  const [opening, course, closing] = [openingOf(facts), markup`${steps(facts)}${cost(facts)}`, tryIt(facts)];
  const shown = (list: readonly ProofRecord[] | null) => {
    const content = markup`${opening}${firstReceipt(facts, list)}${course}${recentProofs(list)}${closing}`;
    const title = `${SERVICE.name}: one HTTPS call, with a receipt anyone can verify`;
    const { path } = ROUTES.frontPage;
    return pages.prepared({ title, description: DESCRIPTION, path, content, scripted: true }, CACHE_BRIEFLY);
  };
  const withProofs = figure(deps, async (_: 'proofs') =>
    shown(await reads.proof.recent(LIMITS.recentProofs.default)),
  );
  return [
    endpoint(
      ROUTES.frontPage,
      null,
      async ({ request }) => {
        const answer = await withProofs('proofs').catch((cause: unknown) => {
          // The rest of the page does not need the read models.
          logFailure(contextOf(request).id, cause);
          return shown(null);
        });
        return answer();
      },
      tooManyReads(pages),
    ),
  ];
}

const DESCRIPTION =
  'A relay that makes one HTTPS request for an AI agent and hands back a signed receipt of what was sent and how it ended.';

const openingOf = (facts: Facts): Markup => markup`<h1>One HTTPS call, with a receipt anyone can verify</h1>
<p class="lead">${SERVICE.name} makes one HTTPS request for an AI agent and hands back a signed receipt: what was sent, when, and how it ended. There is no account; ${priceInShort(facts)}</p>`;

/** The newest receipt that verifies, of a call that succeeded, and the call that makes one. */
function firstReceipt(facts: Facts, proofs: readonly ProofRecord[] | null): Markup {
  const proof = proofs?.find(
    ({ receiptId, receiptVerified, status }) =>
      receiptId !== null && receiptVerified && status === 'succeeded',
  );
  const { receiptId = null } = proof ?? {};
  const newest =
    proof === undefined || receiptId === null
      ? markup`<p>There is none to show yet. ${nextStep(facts)}</p>`
      : markup`<dl class="facts"><dt>Receipt</dt><dd><a href="${ROUTES.proofPage.path.replace(/:\w+/, () => receiptId)}"><code>${receiptId}</code></a></dd>
<dt>It proves</dt><dd>${proof.method}${outcome(proof)}, ${proof.status}</dd>
<dt>Issued</dt><dd><time datetime="${proof.updatedAt}">${readable(proof.updatedAt)}</time></dd></dl>
<p>Open it and your own browser verifies it. ${nextStep(facts)}</p>`;
  return markup`<section class="own" aria-labelledby="newest-receipt"><h2 id="newest-receipt">A receipt of this relay</h2>${newest}${snippetCode(snippet(facts, 'curl-execute'))}</section>`;
}

const nextStep = (facts: Facts): Markup =>
  isDemo(facts)
    ? markup`This call makes one of yours:`
    : markup`This call is answered with <code>402</code> and the terms of payment; a client that pays them gets a receipt of its own: <a href="${ROUTES.snippets.path}">programs that pay</a>.`;

const isDemo = ({ mode }: Facts) => mode === 'demo';

function priceInShort(facts: Facts): string {
  return isDemo(facts)
    ? 'this deployment runs in demo mode, and no one is charged.'
    : `a call costs ${facts.offer.price}.`;
}

function steps(facts: Facts): Markup {
  const { offer } = facts;
  return markup`<h2>How a call goes</h2><ol class="cards">
<li class="card"><h3>${number(1)} Ask first, for free</h3><p>${route(ROUTES.decide)} judges the target and your own policy, records the reasons and recommends whether to pay.</p></li>
<li class="card"><h3>${number(2)} ${isDemo(facts) ? 'Order the call' : 'Pay for one call'}</h3><p>${route(ROUTES.execute)} ${
    isDemo(facts)
      ? 'takes the request. In demo mode no payment is needed.'
      : `answers 402 with the terms. The agent signs a payment of ${offer.price} (x402) and sends the request again.`
  }</p></li>
<li class="card"><h3>${number(3)} The relay calls</h3><p>One ${METHODS.slice(0, -1).join(', ')} or ${METHODS.at(-1) ?? ''} request, ${LIMITS.retryAttempts.min} to ${LIMITS.retryAttempts.max} attempts, to a public HTTPS address only. The order is on record before the first byte goes out.</p></li>
<li class="card"><h3>${number(4)} Keep the receipt</h3><p>It verifies <a href="${ROUTES.verifyPage.path}">in your browser</a>, and offline with the published keys and the <a href="${ROUTES.verifierPackage.path}">npm package</a> or <a href="${ROUTES.verifierPython.path}">one file of Python</a>, without us. It contains address and content only as commitments that the payer can open.</p></li>
</ol>`;
}

const number = (step: number) => markup`<span class="accent">${step}.</span>`;

function cost(facts: Facts): Markup {
  const { offer } = facts;
  const network = networkName(offer.network);
  const asked = isDemo(facts)
    ? markup`<p><strong>Nothing here: this deployment runs in demo mode and charges no one.</strong> Where payment is enforced a call costs ${offer.price}, by x402 on ${network}.</p>`
    : markup`<p><strong>${offer.price} a call</strong>, by x402 (scheme ${offer.scheme}) on ${network}, settled before the call.</p>`;
  return markup`<h2>What it costs</h2>${asked}
<div class="cards"><div class="card"><h3>Charged once${isDemo(facts) ? ', where payment is enforced' : ''}</h3><ul>
<li><code>200</code>: the target answered 2xx</li>
<li><code>502</code>: the target was called and failed; that too has its receipt</li></ul></div>
<div class="card"><h3>Never charged</h3><ul>
<li>refusals: whatever is answered with a <code>4xx</code> or <code>508</code></li>
<li>replays, <code>200</code> and <code>502</code> too: the same request with the same <code>idempotencyKey</code> or payment is answered from the record, nothing is sent</li>
<li>decisions, policy checks, reading and verifying</li></ul></div></div>
<p class="note">After <code>503 payment_unconfirmed</code> repeat with the same payment: it is charged at most once. All rules: <a href="${ROUTES.pricing.path}">pricing</a>.</p>`;
}

function tryIt(facts: Facts): Markup {
  return markup`<h2>Try it</h2>${code(snippet(facts, 'curl-decide'))}
<p>More, in TypeScript, Python and for MCP clients: <a href="${ROUTES.snippets.path}">snippets</a>. The whole interface: <a href="${ROUTES.docsPage.path}">docs</a>.</p>`;
}

const code = ({ title, description, code }: Snippet) =>
  markup`<h3>${title}</h3><p>${description}</p>${snippetCode({ title, code })}`;

const snippetCode = ({ title, code }: Pick<Snippet, 'title' | 'code'>) =>
  markup`<pre tabindex="0" role="region" aria-label="${title}" data-copy><code>${code}</code></pre>`;

function route({ method, path }: RouteFacts): Markup {
  return markup`<code>${method} ${pathTemplate(path)}</code>`;
}

function recentProofs(proofs: readonly ProofRecord[] | null): Markup {
  return markup`<h2 id="${RECENT_PROOFS}">Recent proofs</h2>
<p>What this relay did last. Where a call went, what it carried and who paid is never shown.</p>
${listOf(proofs)}`;
}

function listOf(proofs: readonly ProofRecord[] | null): Markup {
  if (proofs === null) return markup`<p class="warn">The list is unavailable at the moment.</p>`;
  if (proofs.length === 0) return markup`<p class="muted">No call has been made yet.</p>`;
  return markup`<ol class="proofs">${proofs.map(proofItem)}</ol>`;
}

export function proofItem(proof: ProofRecord): Markup {
  const { jobId, status, method, attempts, receiptVerified, createdAt } = proof;
  const tries = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  const receipt = receiptVerified ? ', receipt verified' : '';
  return markup`<li><span class="pill ${status}">${status}</span>
<div><a href="${ROUTES.proofPage.path.replace(/:\w+/, () => jobId)}"><code>${jobId}</code></a><br>
<span class="note">${method}, ${tries}${outcome(proof)}${receipt}</span></div>
<time class="note" datetime="${createdAt}">${readable(createdAt)}</time></li>`;
}

function outcome({ responseStatus, errorCategory }: ProofRecord): string {
  if (responseStatus !== null) return `, answered ${responseStatus}`;
  return errorCategory === null ? '' : `, ${errorCategory.replaceAll('_', ' ')}`;
}

/** `2026-01-02 03:04:05 UTC` of an RFC 3339 time in UTC. */
const readable = (instant: string) => instant.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
