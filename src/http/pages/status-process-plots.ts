// The plots of the status page that are of the answering process, over its last hour.

import { HISTORY_MINUTES } from '#src/http/process-metrics.ts';
import type { MonitoringResponse } from '#src/http/routes/monitoring.ts';
import { type Markup, markup } from './markup.ts';
import { bars, curve } from './plot.ts';
import { axisEnd, figure, sum } from './status-figure.ts';
import { duration } from './status-text.ts';

const MINUTE_MS = 60_000;

type Minutes = MonitoringResponse['history'];
type Span = { readonly from: number; readonly to: number };

export function processPlots({ history }: MonitoringResponse, nowMs: number): readonly Markup[] {
  const to = (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS;
  const span = { from: to - HISTORY_MINUTES * MINUTE_MS, to };
  return [lag(history, span), latency(history, span), requests(history, span)];
}

const mid = (at: string) => Date.parse(at) + MINUTE_MS / 2;
const highest = (values: readonly (number | null)[]) => Math.max(0, ...values.map((value) => value ?? 0));
const answeredIn = (minutes: Minutes) => minutes.filter((minute) => minute.requests > 0);
const nothingIn = (answered: Minutes) => (answered.length === 0 ? 'No request was answered yet.' : null);

function lag(minutes: Minutes, span: Span): Markup {
  const most = highest(minutes.map(({ lagMs }) => lagMs));
  const looked = minutes.filter(({ lagMs }) => lagMs !== null);
  return figure({
    ...span,
    id: 'lag',
    title: 'Lag of the records, per minute',
    description: `How far this process's read models were behind the event log: at most ${duration(most)}.`,
    keys: [['accent', 'most in the minute']],
    max: axisEnd(most),
    unit: duration,
    nothing: looked.length === 0 ? 'Nothing was measured yet.' : null,
    marks: (scales) => {
      const points = minutes.map(({ at, lagMs }) => ({ at: mid(at), value: lagMs }));
      return curve(scales, points, 'accent');
    },
    columns: ['Lag'],
    rows: looked.map(({ at, lagMs }) => [at, duration(lagMs ?? 0)]),
  });
}

function latency(minutes: Minutes, span: Span): Markup {
  const slowest = highest(minutes.map(({ p99Ms }) => p99Ms));
  const answered = answeredIn(minutes);
  return figure({
    ...span,
    id: 'latency',
    title: 'Time to answer, per minute',
    description: `Median and 99th percentile of all requests to this process; the highest is ${duration(slowest)}.`,
    keys: [
      ['accent', 'median'],
      ['warn', '99th percentile (dashed)'],
    ],
    max: axisEnd(slowest),
    unit: duration,
    nothing: nothingIn(answered),
    marks: (scales) => {
      const points = (percentile: 'p50Ms' | 'p99Ms') =>
        minutes.map((minute) => ({ at: mid(minute.at), value: minute[percentile] }));
      return markup`${curve(scales, points('p50Ms'), 'accent')}${curve(scales, points('p99Ms'), 'warn', true)}`;
    },
    columns: ['Median', '99th percentile'],
    rows: answered.map(({ at, p50Ms, p99Ms }) => [at, duration(p50Ms ?? 0), duration(p99Ms ?? 0)]),
  });
}

function requests(minutes: Minutes, span: Span): Markup {
  const most = highest(minutes.map((minute) => minute.requests));
  const answered = answeredIn(minutes);
  return figure({
    ...span,
    id: 'requests',
    title: 'Requests answered, per minute',
    description: `${sum(minutes.map((minute) => minute.requests))} requests answered; at most ${most} in one minute.`,
    keys: [['accent', 'requests']],
    max: most,
    unit: String,
    whole: true,
    nothing: nothingIn(answered),
    marks: (scales) => {
      const counted = minutes.map((minute) => ({ at: Date.parse(minute.at), values: [minute.requests] }));
      return bars(scales, counted, MINUTE_MS, ['accent']);
    },
    columns: ['Requests'],
    rows: answered.map((minute) => [minute.at, String(minute.requests)]),
  });
}
