// The plots of the status page that are of all processes, over the window.

import type { MonitoringResponse } from '#src/http/routes/monitoring.ts';
import { type Markup, markup } from './markup.ts';
import { bucketMs } from './monitoring-series.ts';
import { bars, curve } from './plot.ts';
import { axisEnd, figure, sum } from './status-figure.ts';
import { count, duration, percent, windowName } from './status-text.ts';

type Buckets = MonitoringResponse['series'];

type Window = {
  readonly series: Buckets;
  readonly finished: Buckets;
  readonly size: number;
  readonly span: { readonly from: number; readonly to: number };
  /** The size of a bucket, and all of them, in words. */
  readonly each: string;
  readonly over: string;
  readonly nothing: string | null;
  readonly mid: (at: string) => number;
};

export function windowPlots(summary: MonitoringResponse): readonly Markup[] {
  const window = windowOf(summary);
  return [executions(window), failureRate(window), durations(window)];
}

function windowOf({ windowMs, series }: MonitoringResponse): Window {
  const size = bucketMs(windowMs);
  const each = duration(size);
  const times = series.map(({ at }) => Date.parse(at));
  const finished = series.filter(({ succeeded, failed }) => succeeded + failed > 0);
  return {
    series,
    finished,
    size,
    span: { from: times[0] ?? 0, to: (times.at(-1) ?? 0) + size },
    each,
    over: `in ${count(series.length, 'bucket')} of ${each} over the last ${windowName(windowMs)}`,
    nothing: finished.length === 0 ? 'No execution finished in this window.' : null,
    mid: (at) => Date.parse(at) + size / 2,
  };
}

function executions({ series, finished, size, span, each, over, nothing }: Window): Markup {
  const succeeded = sum(series.map((bucket) => bucket.succeeded));
  const failed = sum(series.map((bucket) => bucket.failed));
  const most = Math.max(0, ...series.map((bucket) => bucket.succeeded + bucket.failed));
  return figure({
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
    marks: (scales) => {
      const counted = series.map(({ at, succeeded, failed }) => ({
        at: Date.parse(at),
        values: [succeeded, failed],
      }));
      return bars(scales, counted, size, ['accent', 'bad']);
    },
    columns: ['Succeeded', 'Failed'],
    rows: finished.map((bucket) => [bucket.at, String(bucket.succeeded), String(bucket.failed)]),
  });
}

function failureRate({ series, finished, span, each, over, nothing, mid }: Window): Markup {
  return figure({
    ...span,
    id: 'failure-rate',
    title: `Failure rate, per ${each}`,
    description: `The share of finished executions that failed, ${over}; none where nothing finished.`,
    keys: [['bad', 'failed of all finished']],
    max: 1,
    unit: percent,
    nothing,
    marks: (scales) => {
      const rates = series.map((bucket) => ({ at: mid(bucket.at), value: rateOf(bucket) }));
      return curve(scales, rates, 'bad');
    },
    columns: ['Failure rate'],
    rows: finished.map((bucket) => [bucket.at, percent(rateOf(bucket) ?? 0)]),
  });
}

function durations({ series, span, each, over, mid }: Window): Markup {
  const timed = series.flatMap(({ at, durationMs }) => (durationMs === null ? [] : [{ at, ...durationMs }]));
  const slowest = Math.max(0, ...timed.map(({ p95 }) => p95));
  return figure({
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
  });
}

function rateOf({ succeeded, failed }: Buckets[number]): number | null {
  return succeeded + failed === 0 ? null : failed / (succeeded + failed);
}
