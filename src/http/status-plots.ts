// The plots of the status page, each with its figures as a table: what is drawn can also be read.
import { type Markup, markup } from './markup.ts';
import type { MonitoringResponse } from './monitoring.ts';
import { bucketMs } from './monitoring-series.ts';
import { bars, type Colour, curve, type Plot, plot } from './plot.ts';
import { HISTORY_MINUTES } from './process-metrics.ts';
import { count, duration, percent, timeText, windowName } from './status-words.ts';

const MINUTE_MS = 60_000;
/** Where an axis of times ends: at no less than its ticks can tell apart. */
const axisEnd = (ms: number) => (ms === 0 ? 1000 : Math.max(1, ms));

type Key = readonly [colour: Colour, words: string];

type Figure = Plot & {
  readonly keys: readonly Key[];
  readonly columns: readonly string[];
  /** Under `columns`, after the time. */
  readonly rows: readonly (readonly [at: string, ...figures: readonly string[]])[];
};

/** Of all processes, over the window. */
export function windowPlots({ windowMs, series }: MonitoringResponse): readonly Markup[] {
  const size = bucketMs(windowMs);
  const each = duration(size);
  const over = `in ${count(series.length, `bucket`)} of ${each} over the last ${windowName(windowMs)}`;
  const times = series.map(({ at }) => Date.parse(at));
  const span = { from: times[0] ?? 0, to: (times.at(-1) ?? 0) + size };
  const finished = series.filter(({ succeeded, failed }) => succeeded + failed > 0);
  const timed = series.flatMap(({ at, durationMs }) => (durationMs === null ? [] : [{ at, ...durationMs }]));
  const succeeded = sum(series.map((bucket) => bucket.succeeded));
  const failed = sum(series.map((bucket) => bucket.failed));
  const most = Math.max(0, ...series.map((bucket) => bucket.succeeded + bucket.failed));
  const slowest = Math.max(0, ...timed.map(({ p95 }) => p95));
  const nothing = finished.length === 0 ? 'No execution finished in this window.' : null;
  const mid = (at: string) => Date.parse(at) + size / 2;
  return [
    figure({
      ...span,
      id: 'executions',
      title: `Executions finished, per ${each}`,
      description: `${succeeded} succeeded and ${failed} failed ${over}; at most ${most} in one.`,
      keys: [
        ['accent', 'succeeded'],
        ['bad', 'failed'],
      ],
      max: most,
      unit: String,
      whole: true,
      nothing,
      marks: (scales) =>
        bars(
          scales,
          series.map((bucket) => ({ at: Date.parse(bucket.at), values: [bucket.succeeded, bucket.failed] })),
          size,
          ['accent', 'bad'],
        ),
      columns: ['Succeeded', 'Failed'],
      rows: finished.map((bucket) => [bucket.at, String(bucket.succeeded), String(bucket.failed)]),
    }),
    figure({
      ...span,
      id: 'failure-rate',
      title: `Failure rate, per ${each}`,
      description: `The share of finished executions that failed, ${over}; none where nothing finished.`,
      keys: [['bad', 'failed of all finished']],
      max: 1,
      unit: percent,
      nothing,
      marks: (scales) =>
        curve(
          scales,
          series.map((bucket) => ({ at: mid(bucket.at), value: rateOf(bucket) })),
          'bad',
        ),
      columns: ['Failure rate'],
      rows: finished.map((bucket) => [bucket.at, percent(rateOf(bucket) ?? 0)]),
    }),
    figure({
      ...span,
      id: 'durations',
      title: `Duration, per ${each}`,
      description: `Median and 95th percentile ${over}; the highest is ${duration(slowest)}. Estimates from counted classes.`,
      keys: [
        ['accent', 'median'],
        ['warn', '95th percentile (dashed)'],
      ],
      max: axisEnd(slowest),
      unit: duration,
      nothing: timed.length === 0 ? 'No duration is known in this window.' : null,
      marks: (scales) => {
        const points = (percentile: 'p50' | 'p95') =>
          series.map(({ at, durationMs }) => ({ at: mid(at), value: durationMs?.[percentile] ?? null }));
        return markup`${curve(scales, points('p50'), 'accent')}${curve(scales, points('p95'), 'warn', true)}`;
      },
      columns: ['Median', '95th percentile'],
      rows: timed.map(({ at, p50, p95 }) => [at, duration(p50), duration(p95)]),
    }),
  ];
}

/** Of the process that answers, over its last hour. */
export function processPlots({ history }: MonitoringResponse, nowMs: number): readonly Markup[] {
  const to = (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS;
  const span = { from: to - HISTORY_MINUTES * MINUTE_MS, to };
  const mid = (at: string) => Date.parse(at) + MINUTE_MS / 2;
  const highest = (of: (entry: (typeof history)[number]) => number | null) =>
    Math.max(0, ...history.map((entry) => of(entry) ?? 0));
  const [lag, latency, requests] = [
    highest(({ lagMs }) => lagMs),
    highest(({ p99Ms }) => p99Ms),
    highest((entry) => entry.requests),
  ];
  const answered = history.filter((entry) => entry.requests > 0);
  const looked = history.filter(({ lagMs }) => lagMs !== null);
  const nothing = answered.length === 0 ? 'No request was answered yet.' : null;
  return [
    figure({
      ...span,
      id: 'lag',
      title: 'Lag of the records, per minute',
      description: `How far this process's read models were behind the event log: at most ${duration(lag)}.`,
      keys: [['accent', 'most in the minute']],
      max: axisEnd(lag),
      unit: duration,
      nothing: looked.length === 0 ? 'Nothing was measured yet.' : null,
      marks: (scales) =>
        curve(
          scales,
          history.map(({ at, lagMs }) => ({ at: mid(at), value: lagMs })),
          'accent',
        ),
      columns: ['Lag'],
      rows: looked.map(({ at, lagMs }) => [at, duration(lagMs ?? 0)]),
    }),
    figure({
      ...span,
      id: 'latency',
      title: 'Time to answer, per minute',
      description: `Median and 99th percentile of all requests to this process; the highest is ${duration(latency)}.`,
      keys: [
        ['accent', 'median'],
        ['warn', '99th percentile (dashed)'],
      ],
      max: axisEnd(latency),
      unit: duration,
      nothing,
      marks: (scales) => {
        const points = (percentile: 'p50Ms' | 'p99Ms') =>
          history.map((entry) => ({ at: mid(entry.at), value: entry[percentile] }));
        return markup`${curve(scales, points('p50Ms'), 'accent')}${curve(scales, points('p99Ms'), 'warn', true)}`;
      },
      columns: ['Median', '99th percentile'],
      rows: answered.map(({ at, p50Ms, p99Ms }) => [at, duration(p50Ms ?? 0), duration(p99Ms ?? 0)]),
    }),
    figure({
      ...span,
      id: 'requests',
      title: 'Requests answered, per minute',
      description: `${sum(history.map((entry) => entry.requests))} requests answered; at most ${requests} in one minute.`,
      keys: [['accent', 'requests']],
      max: requests,
      unit: String,
      whole: true,
      nothing,
      marks: (scales) =>
        bars(
          scales,
          history.map((entry) => ({ at: Date.parse(entry.at), values: [entry.requests] })),
          MINUTE_MS,
          ['accent'],
        ),
      columns: ['Requests'],
      rows: answered.map((entry) => [entry.at, String(entry.requests)]),
    }),
  ];
}

function figure({ keys, columns, rows, ...drawn }: Figure): Markup {
  const key = keys.map(([colour, words]) => markup`<span class="key ${colour}"></span>${words}&ensp; `);
  return markup`<figure class="plot"><h3>${drawn.title}</h3>${plot(drawn)}<figcaption>${key}</figcaption>
<details><summary>Figures as a table</summary>${table(drawn.title, columns, rows)}</details></figure>`;
}

function table(title: string, columns: readonly string[], rows: Figure['rows']): Markup {
  if (rows.length === 0) return markup`<p class="muted">There are no figures yet.</p>`;
  const cells = (figures: readonly string[]) => figures.map((text) => markup`<td class="num">${text}</td>`);
  return markup`<table><caption>${title}. Times are UTC; what is not listed had none.</caption>
<thead><tr><th scope="col">From</th>${columns.map((name) => markup`<th scope="col" class="num">${name}</th>`)}</tr></thead>
<tbody>${rows.map(([at, ...figures]) => markup`<tr><th scope="row"><time datetime="${at}">${timeText(at)}</time></th>${cells(figures)}</tr>`)}</tbody></table>`;
}

function rateOf({ succeeded, failed }: MonitoringResponse['series'][number]): number | null {
  return succeeded + failed === 0 ? null : failed / (succeeded + failed);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((before, number) => before + number, 0);
