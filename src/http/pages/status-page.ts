// The status page: the monitoring summary, drawn, with the same figures as the endpoint. Readable without a script.
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ATTENTION, type AttentionReason } from '#src/domain/monitoring/alert-rules.ts';
import { Fault } from '#src/domain/refusal.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { readInteger } from '#src/http/request/validation.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
import {
  type MonitoringResponse,
  type Summaries,
  wholeWindow,
  windowMs,
} from '#src/http/routes/monitoring.ts';
import { proofItem } from './front-page.ts';
import { type Markup, markup } from './markup.ts';
import { CACHE_BRIEFLY, isBrowser, pagesFrom, tooManyReads, unavailable, unreadable } from './page.ts';
import { duration, percent, timeText, WINDOWS, windowName, windowPlots } from './status-plots.ts';

const { path } = ROUTES.statusPage;
const DESCRIPTION = 'Executions, failures, durations and lag of this relay as plots.';
const REASONS: Readonly<Record<AttentionReason, string>> = {
  failure_rate: `More than ${percent(ATTENTION.failureRate)} of the executions that finished in this window failed.`,
  overdue_job: 'An execution has been running for longer than it may.',
  unverified_receipt: 'A stored receipt does not verify.',
  projection_lag: `The records are more than ${duration(ATTENTION.lagMs)} behind the event log: these figures may be old.`,
  checkpoint_refused:
    'No checkpoint of the transparency log is signed: the event log contradicts one that was published, or its record is damaged.',
  checkpoint_overdue: 'Receipts have waited over a minute for a checkpoint of the transparency log.',
};

export function statusPageRoutes(deps: Moment, facts: Facts, summaries: Summaries): Endpoint[] {
  const pages = pagesFrom(facts.baseUrl);
  const drawn = figure(deps, async (windowMs: number) => {
    const summary = await summaries.of(windowMs);
    const title = summary.ok ? 'Status: ok' : 'Status: attention';
    const page = { title, content: statusOf(summary), description: DESCRIPTION, path, wide: true };
    return pages.prepared(page, CACHE_BRIEFLY);
  });
  return [
    endpoint(
      ROUTES.statusPage,
      null,
      async ({ request }) => {
        const wanted = readInteger(request.url, windowMs);
        if (typeof wanted !== 'number') {
          const problems = wanted.details
            .map((fault) => `${fault.path.slice(1)}: ${fault.message}.`)
            .join(' ');
          return isBrowser(request) ? unreadable(pages, problems, path) : wanted;
        }
        try {
          // Counted first: what is drawn is not waited for within the time that drawing takes.
          await summaries.of(wanted);
          const answer = await drawn(wholeWindow(wanted));
          return answer();
        } catch (error) {
          if (!(error instanceof Fault) || error.code !== 'read_models_unavailable') throw error;
          return unavailable(pages, error);
        }
      },
      tooManyReads(pages),
    ),
  ];
}

function statusOf(summary: MonitoringResponse): Markup {
  const { attention, windowMs: shown, lastUpdatedAt } = { ...summary, ...summary.stats };
  const reasons =
    attention.length === 0
      ? markup`<p class="lead">Executions, receipts and records are in order.</p>`
      : markup`<ul class="lead">${attention.map((reason) => markup`<li>${REASONS[reason]}</li>`)}</ul>`;
  const last =
    lastUpdatedAt === null ? 'No event is recorded yet.' : `Last event: ${timeText(lastUpdatedAt)}.`;
  return markup`<h1>Status: <span class="${summary.status}">${summary.status}</span></h1>
${reasons}${windowLinks(shown)}${tiles(summary)}
<h2>Executions</h2><p class="muted">Of all processes, over the last ${windowName(shown)}. Times are UTC. ${last}</p>
${windowPlots(summary)}
<h2>Recent failures</h2>${failures(summary)}
<p class="note">The same figures for machines: <a href="${ROUTES.monitoring.path}?windowMs=${shown}">${ROUTES.monitoring.path}</a>.
Part by part: <a href="${ROUTES.health.path}">${ROUTES.health.path}</a>.</p>`;
}

function tiles({ stats, failureRate, durations, projection, process }: MonitoringResponse): Markup {
  const finished = stats.recentSucceeded + stats.recentFailed;
  const { p50Ms = null, p95Ms = null } = durations ?? {};
  const figures: readonly (readonly [string, string, string])[] = [
    ['Executions', String(finished), `${stats.recentSucceeded} succeeded, ${stats.recentFailed} failed`],
    ['Failure rate', finished === 0 ? 'none' : percent(failureRate), 'of those that finished'],
    ['Median duration', p50Ms === null ? 'none' : duration(p50Ms), 'estimate'],
    ['95th percentile', p95Ms === null ? 'none' : duration(p95Ms), 'estimate'],
    ['Lag of the records', duration(projection.lagMs), 'behind the event log'],
    ['In flight', String(stats.running), 'executions, all processes'],
    ['Uptime', duration(process.uptimeMs), 'of this process'],
  ];
  return markup`<dl class="tiles">${figures.map(
    ([name, figure, note]) =>
      markup`<div><dt>${name}</dt><dd>${unbroken(figure)}</dd><dd class="note">${note}</dd></div>`,
  )}</dl>`;
}

/** A figure and its unit stay on one line. */
const unbroken = (text: string) => text.replace(/(\d) (?=\D)/g, '$1\u00a0');

function failures({ recentFailures, windowMs: shown }: MonitoringResponse): Markup {
  if (recentFailures.length === 0)
    return markup`<p class="muted">No execution failed in the last ${windowName(shown)}.</p>`;
  return markup`<p class="muted">The newest of the window, each with its proof.</p>
<ol class="proofs">${recentFailures.map(proofItem)}</ol>`;
}

function windowLinks(shown: number): Markup {
  return markup`<nav aria-label="Window"><ul>${WINDOWS.map(([name, ms]) => {
    const current = ms === shown ? { markup: ' aria-current="page"' } : '';
    return markup`<li><a href="${path}?windowMs=${ms}"${current}>${name}</a></li>`;
  })}</ul></nav>`;
}
