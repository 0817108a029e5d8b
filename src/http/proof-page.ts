// The proof page: what the API's report says, readable by people and without JavaScript.

import { Elysia } from 'elysia';
import type { JobRecord } from '#projections/job/query.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { Entropy } from '#src/ports/clock.ts';
import type { HttpDeps } from './deps.ts';
import { STATUS } from './errors.ts';
import { type Links, linksFrom } from './links.ts';
import { type Markup, markup } from './markup.ts';
import { describe } from './operation.ts';
import { REDACTION_POLICY } from './proofs.ts';
import { type Standing, standingOf } from './standing.ts';

export function proofPageRoutes(deps: HttpDeps) {
  const links = linksFrom(deps.settings.baseUrl);
  return new Elysia().get(
    '/proof/:jobOrReceiptId',
    async ({ params }) => {
      const standing = await standingOf(deps, params.jobOrReceiptId);
      if (isRefused(standing)) {
        const text = markup`<h1>No proof here</h1><p>${standing.message}</p>`;
        return page(STATUS[standing.refused], 'No proof here', text, deps.entropy);
      }
      return page(200, `Proof: ${standing.state}`, proof(standing, links), deps.entropy);
    },
    describe(operation),
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
    links.at('/.well-known/jwks.json'),
  ];
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1f2328}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dd{margin:0;overflow-wrap:anywhere}
td,th{text-align:left;padding:.15rem 1rem .15rem 0}li{overflow-wrap:anywhere}
.verified{color:#1a7f37}.failed{color:#cf222e}.running{color:#9a6700}`;

function page(status: number, title: string, content: Markup, entropy: Entropy): Response {
  const nonce = btoa(String.fromCharCode(...entropy.bytes(16)));
  const { markup: html } = markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><style nonce="${nonce}">${{ markup: STYLE }}</style></head><body>${content}</body></html>
`;
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
    },
  });
}

const operation = {
  summary: 'Proof page',
  description: 'A page for people on how a job or receipt stands, with every check.',
  tag: 'verification' as const,
  id: { name: 'jobOrReceiptId', description: 'Identifier of the job or of the receipt.' },
  answers: { 200: ['The page.', 'text/html'], 404: ['A page that says so.', 'text/html'] } as const,
  errors: { 503: 'The read models or the event log are unavailable.' },
};
