// The status page: the monitoring summary, drawn, with the same figures as the endpoint. Readable without a script. Times
// are UTC.
import { scaleLinear, scaleUtc } from 'd3-scale';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ATTENTION, type AttentionReason } from '#src/domain/monitoring/alert-rules.ts';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { Fault } from '#src/domain/refusal.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { readInteger } from '#src/http/request/validation.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
import type { HealthDeps } from '#src/http/routes/health.ts';
import {
  bucketMs,
  type MonitoringResponse,
  type Summaries,
  wholeWindow,
  windowMs,
} from '#src/http/routes/monitoring.ts';
import { proofItem } from './front-page.ts';
import {
  CACHE_BRIEFLY,
  isBrowser,
  type Markup,
  markup,
  pagesFrom,
  tooManyReads,
  unavailableAnswer,
  unreadable,
} from './page.ts';

// ── bars in inline SVG, which take their colours from the style sheet, and their figures as one table

export type Bucket = MonitoringResponse['series'][number];

/** `layers`: bars that stand on each other; `colour`: by its name in the style sheet. */
export type Plot = {
  readonly id: string;
  readonly title: string;
  readonly unit: (value: number) => string;
  readonly layers: readonly {
    readonly name: string;
    readonly colour: 'accent' | 'bad' | 'warn';
    readonly value: (bucket: Bucket) => number;
  }[];
};

export function windowPlots({ windowMs, series }: MonitoringResponse): Markup {
  if (series.every((bucket) => finishedIn(bucket) === 0))
    return markup`<p class="muted">No execution finished in this window.</p>`;
  const busy = series.filter((bucket) => finishedIn(bucket) > 0).length;
  // A few bars, each a pixel wide, show nothing.
  if (busy < PLOTTED_FROM) return figuresTable(series);
  const size = bucketMs(windowMs);
  return markup`<div class="plots">${PLOTS.map((drawn) => plot(series, size, drawn))}</div><details><summary>Figures as a table</summary>${figuresTable(series)}</details>`;
}

/** Parts of the window in which executions finished: from so many on they are drawn. */
const PLOTTED_FROM = 8;

const finishedIn = ({ succeeded, failed }: Bucket) => succeeded + failed;

const PLOTS: readonly Plot[] = [
  {
    id: 'executions',
    title: 'Executions finished',
    unit: (value) => (Number.isInteger(value) ? String(value) : ''),
    layers: [
      { name: 'succeeded', colour: 'accent', value: ({ succeeded }) => succeeded },
      { name: 'failed', colour: 'bad', value: ({ failed }) => failed },
    ],
  },
  {
    id: 'failure-rate',
    title: 'Failure rate',
    unit: percent,
    layers: [
      {
        name: 'failed of all finished',
        colour: 'bad',
        value: (bucket) => bucket.failed / Math.max(1, finishedIn(bucket)),
      },
    ],
  },
  {
    id: 'durations',
    title: 'Duration',
    unit: duration,
    layers: [
      { name: 'median', colour: 'accent', value: ({ durationMs }) => durationMs?.p50 ?? 0 },
      {
        name: 'to the 95th percentile',
        colour: 'warn',
        value: ({ durationMs }) => (durationMs === null ? 0 : durationMs.p95 - durationMs.p50),
      },
    ],
  },
];

/** In units of the view box: narrow, so that text stays readable on a phone. */
const [LEFT, RIGHT, TOP, BOTTOM, TICKS] = [56, 352, 12, 172, 4];

export function plot(series: readonly Bucket[], size: number, { id, title, unit, layers }: Plot): Markup {
  const begin = ({ at }: Bucket) => Date.parse(at);
  const [first, last] = [series[0], series.at(-1)];
  const height = (bucket: Bucket, count: number) =>
    layers.slice(0, count).reduce((sum, { value }) => sum + value(bucket), 0);
  const max = Math.max(...series.map((bucket) => height(bucket, layers.length)));
  const x = scaleUtc([first ? begin(first) : 0, (last ? begin(last) : 0) + size], [LEFT, RIGHT]);
  const y = scaleLinear([0, max || 1], [BOTTOM, TOP]).nice(TICKS);
  const text = (at: number, height: number, anchor: string, words: string) =>
    markup`<text x="${short(at)}" y="${short(height)}" text-anchor="${anchor}">${words}</text>`;
  const values = y.ticks(TICKS).map((value) => {
    const opacity = value === 0 ? 1 : 0.6;
    return markup`<path opacity="${opacity}" d="M${LEFT} ${short(y(value))}H${RIGHT}"/>${text(LEFT - 6, y(value) + 4, 'end', unit(value))}`;
  });
  // Labels have no seconds, and one at the edge would leave the view.
  const times = x.ticks(TICKS).filter((time) => time.getUTCSeconds() === 0);
  const labels = times.map((time) =>
    text(x(time), BOTTOM + 18, x(time) > RIGHT - 20 ? 'end' : 'middle', clock(time)),
  );
  const bars = layers.map(({ colour, value }, at) => {
    const known = series.filter((bucket) => value(bucket) > 0);
    return markup`<g class="${colour}" fill="currentColor">${known.map((bucket) => {
      const [bottom, top] = [y(height(bucket, at)), y(height(bucket, at + 1))];
      const left = x(begin(bucket));
      const width = Math.max(1, x(begin(bucket) + size) - left - 0.6);
      return markup`<rect x="${short(left)}" y="${short(top)}" width="${short(width)}" height="${short(bottom - top)}"/>`;
    })}</g>`;
  });
  const key = layers.map(
    ({ colour, name }) => markup`<span class="${colour}" aria-hidden="true">■</span> ${name}&ensp; `,
  );
  return markup`<figure class="plot"><h3>${title}, per ${duration(size)}</h3><svg viewBox="0 0 360 200" role="img" aria-labelledby="${id}-title">
<title id="${id}-title">${title}: at most ${unit(max)} in ${duration(size)}</title>
${values}${labels}${bars}</svg><figcaption>${key}</figcaption></figure>`;
}

/** A tenth of a unit is less than a pixel. */
const short = (value: number): number => Math.round(value * 10) / 10;

function clock(time: Date): string {
  const [, day, month, , hours] = /^\w+, (\d+) (\w+) (\d+) (\d\d:\d\d)/.exec(time.toUTCString()) ?? [];
  return hours === '00:00' ? `${Number(day)} ${month}` : (hours ?? '');
}

function figuresTable(series: readonly Bucket[]): Markup {
  const rows = series.filter((bucket) => finishedIn(bucket) > 0);
  const columns = ['Succeeded', 'Failed', 'Median', '95th percentile'];
  return markup`<div class="scrolls" tabindex="0" role="region" aria-label="Figures"><table>
<thead><tr><th scope="col">From</th>${columns.map((name) => markup`<th scope="col" class="num">${name}</th>`)}</tr></thead>
<tbody>${rows.map(({ at, succeeded, failed, durationMs }) => {
    const { p50, p95 } = durationMs ?? {};
    const cells = [succeeded, failed, ...[p50, p95].map((ms) => (ms === undefined ? '' : duration(ms)))];
    return markup`<tr><th scope="row"><time datetime="${at}">${timeText(at)}</time></th>${cells.map((text) => markup`<td class="num">${text}</td>`)}</tr>`;
  })}</tbody></table></div>`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const WINDOWS: readonly (readonly [name: string, windowMs: number])[] = [
  ['1 hour', HOUR_MS],
  ['24 hours', DAY_MS],
  ['7 days', 7 * DAY_MS],
  ['30 days', 30 * DAY_MS],
];

export function windowName(windowMs: number): string {
  return WINDOWS.find(([, known]) => known === windowMs)?.[0] ?? duration(windowMs);
}

export function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

/** With the units that matter at its size: `250 ms`, `1.25 s`, `3 min 20 s`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < MINUTE_MS) return `${Math.round(ms / 10) / 100} s`;
  const [large, small, largeMs, smallMs] = unitsOf(ms);
  const rest = Math.floor((ms % largeMs) / smallMs);
  return `${Math.floor(ms / largeMs)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`;
}

function unitsOf(ms: number): readonly [string, string, number, number] {
  if (ms < HOUR_MS) return ['min', 's', MINUTE_MS, 1000];
  return ms < DAY_MS ? ['h', 'min', HOUR_MS, MINUTE_MS] : ['d', 'h', DAY_MS, HOUR_MS];
}

export const timeText = (at: string): string => at.slice(0, 16).replace('T', ' ');

// ── the page ────────────────────────────────────────────────────────────────────────────────────────

const { path } = ROUTES.statusPage;
const DESCRIPTION = 'Executions, failures, durations and lag of this relay as plots.';
const REASONS: Readonly<Record<AttentionReason, string>> = {
  failure_rate: `More than ${percent(ATTENTION.failureRate)} of the executions that finished in this window failed.`,
  overdue_job: 'An execution has been running for longer than it may.',
  unverified_receipt: 'A stored receipt does not verify.',
  projection_lag: sentenceOf('projections', 'lagging'),
  checkpoint_refused:
    'No checkpoint of the transparency log is signed: the event log contradicts one that was published, or its record is damaged.',
  checkpoint_overdue: sentenceOf('transparencyLog', 'checkpoint_overdue'),
};

export function statusPageRoutes(
  deps: Moment & Pick<HealthDeps, 'wrong'>,
  facts: Facts,
  summaries: Summaries,
): Endpoint[] {
  const pages = pagesFrom(facts.baseUrl);
  const drawn = figure(deps, async (windowMs: number) => {
    const summary = await summaries.of(windowMs);
    const title = summary.ok ? 'Status: ok' : 'Status: attention';
    const page = {
      title,
      content: statusOf(summary, deps.wrong()),
      description: DESCRIPTION,
      path,
      wide: true,
    };
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
          return unavailableAnswer(pages, error);
        }
      },
      tooManyReads(pages),
    ),
  ];
}

/** `wrong`: sentences of the parts that are not ok. */
function statusOf(summary: MonitoringResponse, wrong: readonly string[]): Markup {
  const { attention, windowMs: shown, lastUpdatedAt } = { ...summary, ...summary.stats };
  const texts = [...new Set([...attention.map((reason) => REASONS[reason]), ...wrong])];
  const reasons =
    texts.length === 0
      ? markup`<p class="lead">Executions, receipts and records are in order.</p>`
      : markup`<ul class="lead">${texts.map((text) => markup`<li>${text}</li>`)}</ul>`;
  const last =
    lastUpdatedAt === null ? 'No event is recorded yet.' : `Last event: ${timeText(lastUpdatedAt)}.`;
  return markup`<h1>Status: <span class="${summary.status}">${summary.status}</span></h1>
${reasons}${windowLinks(shown)}${tiles(summary)}
<h2>Executions</h2><p class="muted">Of all processes, over the last ${windowName(shown)}. Times are UTC. ${last}</p>
${windowPlots(summary)}
<h2>Targets that failed</h2>${failures(summary)}
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
