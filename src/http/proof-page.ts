// The proof page: what the API's report says, readable by people and without JavaScript.

import { Elysia } from 'elysia';
import type { JobRecord } from '#projections/job/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { HttpDeps } from './deps.ts';
import { STATUS } from './errors.ts';
import { type Links, linksFrom } from './links.ts';
import { type Markup, markup } from './markup.ts';
import { describe } from './operation.ts';
import { pagesFrom } from './page.ts';
import { REDACTION_POLICY } from './proofs.ts';
import { type Standing, standingOf } from './standing.ts';

export function proofPageRoutes(deps: HttpDeps) {
  const links = linksFrom(deps.settings.baseUrl);
  const page = pagesFrom(deps.settings.baseUrl);
  return new Elysia().get(
    ROUTES.proofPage.path,
    async ({ params }) => {
      const standing = await standingOf(deps, params.jobOrReceiptId);
      if (isRefused(standing)) {
        const text = markup`<h1>No proof here</h1><p>${standing.message}</p>`;
        return page(STATUS[standing.refused], {
          title: 'No proof here',
          description: standing.message,
          content: text,
        });
      }
      return page(200, {
        title: `Proof: ${standing.state}`,
        description: 'How one relayed call stands, with every check of its receipt.',
        content: proof(standing, links),
      });
    },
    describe(ROUTES.proofPage, operation),
  );
}

function proof({ state, job, report }: Standing, links: Links): Markup {
  return markup`<h1>Proof of one relayed call: <span class="${state}">${state}</span></h1>
${job === null ? markup`<p>The job is no longer retained; its receipt is.</p>` : jobFacts(job)}
${report === null ? markup`<p>The job is running: there is no receipt yet.</p>` : reportFacts(report)}
<h2>For machines</h2><ul>${addresses(job, report, links).map((link) => markup`<li><a href="${link}">${link}</a></li>`)}</ul>
<p>${REDACTION_POLICY.summary} A signature proves what this relay said, not what the target did.</p>`;
}

function jobFacts(job: JobRecord): Markup {
  const rows: readonly (readonly [string, string])[] = [
    ['Job', job.id],
    ['Status', job.status],
    ['Method', job.method],
    ['Attempts', String(job.attempts)],
    ['Response status', String(job.responseStatus ?? 'none')],
    ['Error category', job.errorCategory ?? 'none'],
    ['Created', job.createdAt],
    ['Updated', job.updatedAt],
  ];
  return markup`<h2>Job</h2><dl>${rows.map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function reportFacts({ receiptId, keyId, signatureVerified, checks }: VerificationReport): Markup {
  const rows = checks.map(
    ({ name, ok }) =>
      markup`<tr><td>${name}</td><td class="${ok ? 'verified' : 'failed'}">${ok ? 'ok' : 'failed'}</td></tr>`,
  );
  return markup`<h2>Receipt</h2><dl><dt>Receipt</dt><dd>${receiptId ?? 'unknown'}</dd><dt>Key</dt><dd>${keyId ?? 'unknown'}</dd>
<dt>Signature</dt><dd>${signatureVerified ? 'verified' : 'not verified'}</dd></dl>
<h2>Checks</h2><table><thead><tr><th>Check</th><th>Result</th></tr></thead><tbody>${rows}</tbody></table>`;
}

function addresses(job: JobRecord | null, report: VerificationReport | null, links: Links): string[] {
  const receiptId = report?.receiptId ?? job?.receiptId ?? null;
  return [
    ...(job === null ? [] : [links.job(job.id), links.verifyJob(job.id)]),
    ...(receiptId === null ? [] : [links.receipt(receiptId), links.verifyReceipt(receiptId)]),
    links.at(ROUTES.jwks.path),
  ];
}

const operation = {
  id: { name: 'jobOrReceiptId', description: 'Identifier of the job or of the receipt.' },
  answers: { 200: ['The page.', 'text/html'], 404: ['A page that says so.', 'text/html'] } as const,
  errors: { 503: 'The read models or the event log are unavailable.' },
};
