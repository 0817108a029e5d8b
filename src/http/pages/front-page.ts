// The front page: what this is, what it costs, what it did last. All but the list of proofs is made once.
import { Elysia } from 'elysia';
import type { ProofRecord } from '#projections/proof/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS, SERVICE } from '#src/domain/limits.ts';
import type { ReadsOf } from '#src/http/deps.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog } from '#src/http/response/errors.ts';
import { type DocumentDeps, documentFacts } from '#src/http/routes/document-facts.ts';
import type { Logger } from '#src/ports/logger.ts';
import { frontPageWords } from './front-page-text.ts';
import { type Markup, markup } from './markup.ts';
import { pagesFrom, RECENT_PROOFS } from './page.ts';

/** Its list is live: who looks again soon sees what came since. */
const CACHE_BRIEFLY = { 'cache-control': 'public, max-age=5' } as const;

type FrontPageDeps = DocumentDeps & ReadsOf<'proof'> & { readonly logger: Logger };

export function frontPageRoutes(deps: FrontPageDeps) {
  const page = pagesFrom(deps.settings.baseUrl);
  const words = frontPageWords(documentFacts(deps));
  const tell = failureLog(deps, 'front page without proofs');
  return new Elysia().get(
    ROUTES.frontPage.path,
    async ({ request }) =>
      page(
        200,
        {
          title: `${SERVICE.name}: one HTTPS call, with a receipt anyone can verify`,
          description: words.description,
          path: ROUTES.frontPage.path,
          content: markup`${words.opening}${recentProofs(await newest(deps, (cause) => tell(contextOf(request).id, cause)))}${words.closing}`,
        },
        CACHE_BRIEFLY,
      ),
    unlisted,
  );
}

/** null: the read models are away, which the rest of the page does not need. */
async function newest(
  { reads }: ReadsOf<'proof'>,
  tell: (cause: unknown) => void,
): Promise<readonly ProofRecord[] | null> {
  try {
    return await reads.proof.recent(LIMITS.proofs.default);
  } catch (cause) {
    tell(cause);
    return null;
  }
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
<a href="${ROUTES.proofPage.path.replace(/:\w+/, () => jobId)}"><code>${jobId}</code></a>
<span>${method}, ${tries}${outcome(proof)}${receipt}</span>
<time datetime="${createdAt}">${readable(createdAt)}</time></li>`;
}

function outcome({ responseStatus, errorCategory }: ProofRecord): string {
  if (responseStatus !== null) return `, answered ${responseStatus}`;
  return errorCategory === null ? '' : `, ${errorCategory.replaceAll('_', ' ')}`;
}

/** `2026-01-02 03:04:05 UTC` of an RFC 3339 time in UTC. */
const readable = (instant: string) => instant.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
