// The proof page: the verification report, readable by people and without JavaScript, and what a receipt proves. And its
// badge, one word for the status of a job: always 200, so that a page that shows it is never broken.
import type { JobRecord } from '#projections/job/query.ts';
import { type Deployment, networkName } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { PaymentFacts } from '#src/domain/event-fields.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { checkRow, countText } from '#src/domain/receipt/texts.ts';
import { Fault, isRefused } from '#src/domain/refusal.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { statedCosigners } from '#src/domain/transparency/cosignature.ts';
import type { Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog, STATUS } from '#src/http/response/errors.ts';
import { type Links, linksFrom } from '#src/http/response/links.ts';
import { REDACTION_POLICY } from '#src/http/routes/proofs.ts';
import { type Standing, type StandingDeps, standings } from '#src/http/routes/verify.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';
import {
  isBrowser,
  type Markup,
  markup,
  pagesFrom,
  RECENT_PROOFS,
  tooManyReads,
  unavailableAnswer,
} from './page.ts';

export type ProofPageDeps = StandingDeps &
  Settings<'baseUrl' | 'witnesses'> & {
    /** The script that the pages run: the verifier, built beforehand. */
    readonly verifyScript: string;
    readonly transparency: Pick<Transparency, 'latest'>;
    /** An amount as people read it: `$0.003 USDC`. */
    readonly amountText: (paid: Pick<PaymentFacts, 'network' | 'asset' | 'amount'>) => Promise<string>;
    readonly logger: Logger;
    readonly clock: Clock;
  };

export function proofPageRoutes(deps: ProofPageDeps): Endpoint[] {
  const links = linksFrom(deps.settings.baseUrl);
  const pages = pagesFrom(deps.settings.baseUrl, deps.verifyScript);
  const standingOf = standings(deps);
  const logFailure = failureLog(deps);
  return [
    endpoint(
      ROUTES.proofPage,
      operation,
      async ({ request, id }) => {
        const standing = await standingOf(id).catch((thrown: unknown) => {
          if (!(thrown instanceof Fault) || STATUS[thrown.code] !== 503 || !isBrowser(request)) throw thrown;
          logFailure(contextOf(request).id, thrown);
          return thrown;
        });
        if (standing instanceof Fault) return unavailableAnswer(pages, standing);
        if (isRefused(standing)) {
          const { message } = standing;
          const page = { title: 'No proof here', description: message, content: noProof(message) };
          return pages.answer(STATUS[standing.refused], page);
        }
        return pages.answer(200, {
          title: `Proof: ${standing.state}`,
          description: 'The state of one relayed call, with every check of its receipt.',
          path: ROUTES.proofPage.path.replace(/:\w+/, () => id),
          content: proof(standing, links, await essentials(standing, deps), deps),
          scripted: typeof standing.report?.receiptId === 'string',
        });
      },
      tooManyReads(pages),
    ),
    endpoint(
      ROUTES.proofBadge,
      null,
      async ({ request, id }) => {
        const standing = await standingOf(id).catch((cause: unknown) => {
          logFailure(contextOf(request).id, cause);
          return null;
        });
        return badgeAnswer(standing === null || isRefused(standing) ? 'unknown' : badgeState(standing));
      },
      () => badgeAnswer('unknown'),
    ),
  ];
}

const noProof = (message: string) => markup`<h1>No proof here</h1><p class="lead">${message}</p>
<p>An identifier begins with <code>job_</code> or <code>rcpt_</code>; records are kept for a limited time. Newest ones: <a href="${ROUTES.frontPage.path}#${RECENT_PROOFS}">recent proofs</a>.</p>`;

/** `first`: the facts above all others. */
function proof(
  standing: Standing,
  links: Links,
  first: Readonly<Record<string, string>>,
  { settings, transparency }: Pick<ProofPageDeps, 'settings' | 'transparency'>,
): Markup {
  // This relay keeps a transparency log.
  const logged = transparency.latest() !== null;
  const { state, job, report } = standing;
  return markup`<h1>Proof of one relayed call <span class="pill ${state}">${state}</span></h1>
<p class="lead">${inWords(standing)}</p>
${facts(first)}
${report === null ? NOTHING : checksOf(report, links, logged)}
${cosignersOf(report, transparency.latest())}
<h2>The call, as this relay reports it</h2>${job === null ? markup`<p>The job is no longer retained; its receipt is.</p>` : NOTHING}
${facts({ ...(job && jobFacts(job)), ...(report && receiptFacts(report)) })}
${report === null ? NOTHING : whatItProves(settings.witnesses)}
<h2>What is redacted</h2><p>${REDACTION_POLICY.summary} The receipt holds salted hashes of the rest: its payer can disclose each of them.</p><div id="redacted"></div>
<h2>For machines</h2><ul>${addresses(standing, links, logged).map((link) => markup`<li><a href="${link}">${link}</a></li>`)}</ul>`;
}

const NOTHING = markup``;

/** Who has cosigned the newest cosigned checkpoint, if that contains the receipt: without a script, what the relay says. */
function cosignersOf(report: VerificationReport | null, checkpoint: string | null): Markup {
  const logged = report?.checks.find(({ name }) => name === 'receipt_logged')?.details;
  const index = logged !== undefined && 'index' in logged ? logged.index : Number.POSITIVE_INFINITY;
  const cosigners =
    index < (parseCheckpoint(checkpoint ?? '')?.size ?? 0) ? statedCosigners(checkpoint ?? '') : [];
  if (cosigners.length === 0) return NOTHING;
  return markup`<h2>Witnesses</h2><p>A checkpoint of the transparency log that contains this receipt was cosigned by:</p>
<ul id="cosigners">${cosigners.map(({ name, time }) => markup`<li><code>${name}</code> at ${iso(time * 1000)}</li>`)}</ul>`;
}

/** One table: the relay's results, which the script of the page (src/verify/page) replaces with those of the reader's browser. */
function checksOf({ receiptId, checks }: VerificationReport, links: Links, logged: boolean): Markup {
  const rows = checks.map((check) => checkRow(check, 'ok'));
  const count = countText(rows.map(({ state }) => state));
  const isOpen = checks.every(({ ok }) => ok) ? NOTHING : markup` open`;
  const table = markup`<details id="own-rows"${isOpen}><summary id="own-count">${count}</summary>
<table id="checks" class="checks"><thead><tr><th scope="col">Result</th><th scope="col">Check</th></tr></thead><tbody>${rows.map(rowOf)}</tbody></table></details>
<p class="note">Checked by this relay: ${count}. <span class="ok">ok</span> is what the relay says, <span class="verified">verified</span> what your own browser has checked.</p>`;
  if (receiptId === null) return markup`<section class="own"><h2>Every check</h2>${table}</section>`;
  const addressFor = ({ path }: { readonly path: string }) =>
    path.replace(/:\w+/, () => encodeURIComponent(receiptId));
  const inLog = markup`, with <a href="${addressFor(ROUTES.logProof)}">its proof</a> under the newest <a href="${ROUTES.logCheckpoint.path}">checkpoint</a> of the transparency log`;
  return markup`<section class="own" id="own-check" aria-labelledby="own-title" data-receipt-id="${receiptId}" data-receipt="${addressFor(ROUTES.receipt)}" data-keys="${ROUTES.jwks.path}" data-proof="${addressFor(ROUTES.logProof)}" data-checkpoint="${ROUTES.logCheckpoint.path}">
<h2 id="own-title">Every check</h2>
<p id="own-state" role="status">Nothing was checked in your browser: that takes JavaScript. The rest of this page is what the relay says of itself.</p>
${table}<div id="own-findings"><p>Without a script, save <a href="${addressFor(ROUTES.receipt)}">the receipt</a> as <code>receipt.json</code> and check it on the command line${logged ? inLog : ''}:</p>
${commandLine(links.at(ROUTES.jwks.path), logged ? links.logProof(receiptId) : null)}</div></section>`;
}

function rowOf({ state, label, name, more }: ReturnType<typeof checkRow>): Markup {
  const values = more === null ? NOTHING : markup`<br><span class="note">${more}</span>`;
  return markup`<tr data-check="${name}" data-state="${state}"><td><span class="pill ${state}">${state}</span></td>
<td>${label} <code class="muted">${name}</code>${values}</td></tr>`;
}

function inWords({ state, report }: Standing): string {
  if (report === null) return 'The job is running: there is no receipt yet.';
  if (!report.ok) return 'At least one check of this relay does not hold: do not rely on this receipt.';
  return state === 'verified'
    ? 'This relay says that every check of the receipt holds.'
    : 'The call failed. This relay says that every check of the receipt holds: that the call failed is what it proves.';
}

/** What a reader looks for first: how the call ended, when, and what was paid. */
async function essentials({ job, report }: Standing, deps: Pick<ProofPageDeps, 'amountText'>) {
  const answer = job?.responseStatus ?? null;
  const isOver = job !== null && job.status !== 'running';
  const outcome = `${job?.status}, ${answer === null ? `no answer (${job?.errorCategory})` : `the target answered ${answer}`}`;
  return {
    ...(isOver ? { Outcome: outcome } : {}),
    ...(job === null ? {} : { [isOver ? 'Completed' : 'Started']: isOver ? job.updatedAt : job.createdAt }),
    ...(report === null ? {} : { Paid: await paidText(report, deps) }),
  };
}

/** Of the check that compares the payment of the job with that of its receipt. */
async function paidText(
  { checks }: VerificationReport,
  { amountText }: Pick<ProofPageDeps, 'amountText'>,
): Promise<string> {
  const compared = checks.find(({ name }) => name === 'payment_matches')?.details;
  const payment = compared !== undefined && 'expected' in compared ? compared.expected : undefined;
  if (payment === null) return 'nothing: payment is off';
  if (!isPayment(payment)) return 'unknown';
  return `${await amountText(payment)} on ${networkName(payment.network)}`;
}

const isPayment = shapeCheck(PaymentFacts);

const jobFacts = (job: JobRecord) => ({
  Job: job.id,
  Status: job.status,
  Method: job.method,
  Attempts: job.attempts,
  'Response status': job.responseStatus ?? 'none',
  'Error category': job.errorCategory ?? 'none',
  Created: job.createdAt,
  Updated: job.updatedAt,
});

const receiptFacts = ({ receiptId, keyId, signatureVerified }: VerificationReport) => ({
  Receipt: receiptId ?? 'unknown',
  Key: keyId ?? 'unknown',
  Signature: signatureVerified ? 'verified' : 'not verified',
});

const facts = (rows: Readonly<Record<string, string | number>>) =>
  markup`<dl class="facts">${Object.entries(rows).map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

function addresses({ job, report }: Standing, links: Links, logged: boolean): string[] {
  const receiptId = report?.receiptId ?? job?.receiptId ?? null;
  return [
    ...(job === null ? [] : [links.job(job.id), links.verifyJob(job.id)]),
    ...(receiptId === null ? [] : [links.receipt(receiptId), links.verifyReceipt(receiptId)]),
    links.at(ROUTES.jwks.path),
    ...(logged && receiptId !== null ? [links.logProof(receiptId)] : []),
    ...(logged ? [links.at(ROUTES.logCheckpoint.path)] : []),
  ];
}

const operation = {
  id: { description: 'Identifier of the job or of the receipt.' },
  answers: {
    200: ['The page.', 'text/html'],
    404: ['A page that says so.', 'text/html'],
  } as const,
  errors: { 503: 'The read models or the event log are unavailable.' },
  pageErrors: [503],
};

/** `witnesses`: of the transparency log. */
export const whatItProves = (
  witnesses: Deployment['witnesses'],
): Markup => markup`<h2>What a receipt proves</h2><ul>
<li><strong>The relay said this, and not one letter was changed since</strong>: the signature covers every byte of the receipt.</li>
<li><strong>One request, one outcome, one payment</strong>: salted hashes bind it to the target, headers, bodies and key; a holder of those values can show that they are the ones.</li>
<li><strong>The recorded history of the job</strong>: the receipt holds a hash over every event of it: an event that is edited, dropped or moved later is caught by an audit.</li>
<li><strong>That it is in the transparency log, with a proof</strong>: a relay that drops or rewrites it later is caught by anyone who kept a checkpoint of the log.</li></ul>
<h2>What it does not prove</h2><ul>
<li><strong>That it is true</strong>: a false outcome, truly signed, looks like a true one. A signature proves what this relay said, not what the target did.</li>
${witnesses === null ? UNWITNESSED : WITNESSED}
<li><strong>Whose keys these are</strong>: keys fetched from the relay show that it agrees with itself. A key set that you kept from before shows more.</li></ul>`;

const UNWITNESSED = markup`<li><strong>That everybody is shown the same log</strong>: the log is unwitnessed: no independent witness signs its checkpoints yet. Until one does, only readers who compare theirs catch a relay that shows two.</li>
<li><strong>When it was issued</strong>: the time in it is the relay’s own claim; only the timestamp of a witness would catch backdating.</li>`;
const WITNESSED = markup`<li><strong>That everybody is shown the same log, and when it was issued</strong>, unless you verify the witnesses: with cosignatures of a quorum of witnesses that you trust, the receipt is in the one log that everybody is shown, and existed at their time. The names and times on this page are the relay’s own claim.</li>`;

/**
 * How to verify without this page. `keys`, `proof`: addresses of the key set and of the receipt's proof file; null:
 * there is no transparency log.
 */
export const commandLine = (keys: string, proof: string | null): Markup =>
  markup`${commands(keys, proof)}
<p class="note">In your own program: the <a href="${ROUTES.verifierPackage.path}">npm package</a> (<code>relay verify</code> is a command of the relay’s own package), <a href="${ROUTES.verifierModule.path}">one file of JavaScript</a> or <a href="${ROUTES.verifierPython.path}">one file of Python</a>; each needs no network.</p>`;

const commands = (keys: string, proof: string | null): Markup =>
  proof === null
    ? markup`<pre class="wrap" data-copy><code>curl -sf ${keys} &gt; jwks.json
relay verify receipt.json --keys jwks.json</code></pre>`
    : markup`<pre class="wrap" data-copy><code>curl -sf ${keys} &gt; jwks.json
curl -sf ${proof} &gt; receipt.tlog-proof
relay verify receipt.json --keys jwks.json --proof receipt.tlog-proof</code></pre>
<p class="note">A receipt is in the transparency log some seconds after its issue: before, <code>curl</code> fails, and there is no proof to give yet.</p>`;

/** A failed call whose receipt verifies is no fault of the receipt. */
const badgeState = ({ state, report }: Standing) =>
  state === 'failed' && report?.ok === true ? CALL_FAILED : state;

const CALL_FAILED = 'verified: call failed';
const COLOURS = {
  verified: '#2da44e',
  [CALL_FAILED]: '#bf8700',
  failed: '#cf222e',
  running: '#bf8700',
  unknown: '#6e7781',
} as const;

const BADGE_HEADERS = {
  'content-type': ROUTES.proofBadge.mediaType,
  'cache-control': 'public, max-age=30',
  'content-security-policy': "default-src 'none'",
};

const badgeAnswer = (state: keyof typeof COLOURS) => new Response(badge(state), { headers: BADGE_HEADERS });

function badge(state: keyof typeof COLOURS): string {
  const left = 78;
  const width = left + 16 + state.length * 7;
  const { markup: svg } =
    markup`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="relay proof: ${state}">
<title>relay proof: ${state}</title>
<rect width="${width}" height="20" rx="3" fill="#24292f"/>
<rect x="${left}" width="${width - left}" height="20" rx="3" fill="${COLOURS[state]}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="8" y="14">relay proof</text><text x="${left + 8}" y="14">${state}</text></g>
</svg>`;
  return svg;
}
