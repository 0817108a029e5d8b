// The plots of the status page: executions, failure rate and duration over the window as inline SVG, and their figures as
// one table. They load nothing, take their colours from the style sheet, and state in words what they show. Times are UTC.
import { scaleLinear, scaleUtc } from 'd3-scale';
import { line } from 'd3-shape';
import { bucketMs, type MonitoringResponse } from '#src/http/routes/monitoring.ts';
import { type Markup, markup } from './markup.ts';

/** `at`: where it begins. */
export type Bucket = MonitoringResponse['series'][number];

export type Plot = {
  /** Of this plot alone on its page. */
  readonly id: string;
  readonly title: string;
  /** For readers who do not see the plot. */
  readonly description: string;
  /** Whether the layers are bars that stand on each other, or lines. */
  readonly stacked: boolean;
  /** The largest value; the axis begins at 0. */
  readonly max: number;
  readonly unit: (value: number) => string;
  /** Shown if there is nothing to draw. */
  readonly nothing: string;
  readonly layers: readonly Layer[];
};

/** `colour`: by its name in the style sheet. `value`: null where there is nothing to draw. */
type Layer = {
  readonly name: string;
  readonly colour: 'accent' | 'bad' | 'warn';
  readonly value: (bucket: Bucket) => number | null;
};

export function windowPlots({ windowMs, series }: MonitoringResponse): Markup {
  const size = bucketMs(windowMs);
  const each = duration(size);
  const over = `in ${count(series.length, 'bucket')} of ${each} over the last ${windowName(windowMs)}`;
  const slowest = Math.max(0, ...series.map(({ durationMs }) => durationMs?.p95 ?? 0));
  const most = Math.max(0, ...series.map(finishedIn));
  const plots: Plot[] = [
    {
      id: 'executions',
      title: `Executions finished, per ${each}`,
      description: `${sum(series.map(({ succeeded }) => succeeded))} succeeded and ${sum(series.map(({ failed }) => failed))} failed ${over}; at most ${most} in one.`,
      stacked: true,
      max: most,
      unit: String,
      nothing: 'No execution finished in this window.',
      layers: [
        { name: 'succeeded', colour: 'accent', value: ({ succeeded }) => succeeded || null },
        { name: 'failed', colour: 'bad', value: ({ failed }) => failed || null },
      ],
    },
    {
      id: 'failure-rate',
      title: `Failure rate, per ${each}`,
      description: `The share of finished executions that failed, ${over}; none where nothing finished.`,
      stacked: false,
      max: 1,
      unit: percent,
      nothing: 'No execution finished in this window.',
      layers: [{ name: 'failed of all finished', colour: 'bad', value: rateOf }],
    },
    {
      id: 'durations',
      title: `Duration, per ${each}`,
      description: `Median and 95th percentile ${over}; the highest is ${duration(slowest)}. Estimates from counted classes.`,
      stacked: false,
      // At least what its ticks can distinguish.
      max: slowest === 0 ? 1000 : Math.max(1, slowest),
      unit: duration,
      nothing: 'No duration is known in this window.',
      layers: [
        { name: 'median', colour: 'accent', value: ({ durationMs }) => durationMs?.p50 ?? null },
        { name: '95th percentile', colour: 'warn', value: ({ durationMs }) => durationMs?.p95 ?? null },
      ],
    },
  ];
  return markup`<div class="plots">${plots.map((drawn) => plot(series, size, drawn))}</div>${table(series)}`;
}

const finishedIn = ({ succeeded, failed }: Bucket) => succeeded + failed;
const rateOf = (bucket: Bucket) => (finishedIn(bucket) === 0 ? null : bucket.failed / finishedIn(bucket));
const sum = (numbers: readonly number[]) => numbers.reduce((before, number) => before + number, 0);

/** In units of the view box: narrow, so that text stays readable on a phone. */
const [LEFT, RIGHT, TOP, BOTTOM, TICKS] = [56, 352, 12, 172, 4];

/** `size`: ms of a bucket. */
export function plot(series: readonly Bucket[], size: number, drawn: Plot): Markup {
  const { id, title, description, stacked, max, unit, nothing, layers } = drawn;
  const begin = ({ at }: Bucket) => Date.parse(at);
  const [first, last] = [series[0], series.at(-1)];
  const x = scaleUtc([first ? begin(first) : 0, (last ? begin(last) : 0) + size], [LEFT, RIGHT]);
  const y = scaleLinear([0, max > 0 ? max : 1], [BOTTOM, TOP]).nice(TICKS);
  const isEmpty = series.every((bucket) => layers.every(({ value }) => value(bucket) === null));
  const text = (at: number, height: number, anchor: string, words: string) =>
    markup`<text x="${at}" y="${height}" text-anchor="${anchor}">${words}</text>`;
  const values = y.ticks(TICKS).filter((value) => !stacked || Number.isInteger(value));
  // Whole minutes: labels have no seconds.
  const times = x.ticks(TICKS).filter((time) => time.getUTCSeconds() === 0);
  const axes = [
    ...values.map((value) => {
      const at = short(y(value));
      const grid = markup`<path class="stroke-${value === 0 ? 'line' : 'grid'}" d="M${LEFT} ${at}H${RIGHT}"/>`;
      return markup`${grid}${text(LEFT - 6, at + 4, 'end', unit(value))}`;
    }),
    // A label at the edge would leave the view.
    ...times.map((time) =>
      text(short(x(time)), BOTTOM + 18, x(time) > RIGHT - 20 ? 'end' : 'middle', clock(time)),
    ),
  ];
  const marks = layers.map(({ colour, value }, at) => {
    const known = series.filter((bucket) => value(bucket) !== null);
    const middle = (bucket: Bucket) => x(begin(bucket) + size / 2);
    if (!stacked) {
      const path = line<Bucket>(middle, (bucket) => y(value(bucket) ?? 0))
        .defined((bucket) => value(bucket) !== null)
        .digits(1)([...series]);
      return markup`<path class="stroke-${colour}" fill="none" stroke-width="1.5" d="${path ?? ''}"/><g class="fill-${colour}">${known.map(
        (bucket) =>
          markup`<circle cx="${short(middle(bucket))}" cy="${short(y(value(bucket) ?? 0))}" r="1.8"/>`,
      )}</g>`;
    }
    const below = (bucket: Bucket) => sum(layers.slice(0, at).map((layer) => layer.value(bucket) ?? 0));
    return markup`<g class="fill-${colour}">${known.map((bucket) => {
      const [low, left] = [below(bucket), x(begin(bucket))];
      const [bottom, top] = [y(low), y(low + (value(bucket) ?? 0))];
      const width = Math.max(1, x(begin(bucket) + size) - left - 0.6);
      return markup`<rect x="${short(left)}" y="${short(top)}" width="${short(width)}" height="${short(bottom - top)}"/>`;
    })}</g>`;
  });
  const key = layers.map(({ colour, name }) => markup`<span class="key ${colour}"></span>${name}&ensp; `);
  return markup`<figure class="plot"><h3>${title}</h3><svg viewBox="0 0 360 200" role="img" aria-labelledby="${id}-title ${id}-text">
<title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>
${axes}${isEmpty ? text((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2, 'middle', nothing) : marks}</svg><figcaption>${key}</figcaption></figure>`;
}

/** A tenth of a unit is less than a pixel. */
const short = (value: number): number => Math.round(value * 10) / 10;

/** The time of day, and at midnight the day: `29 Mar`. */
function clock(time: Date): string {
  const [, day, month, , hours] = /^\w+, (\d+) (\w+) (\d+) (\d\d:\d\d)/.exec(time.toUTCString()) ?? [];
  return hours === '00:00' ? `${Number(day)} ${month}` : (hours ?? '');
}

function table(series: readonly Bucket[]): Markup {
  const rows = series.filter((bucket) => finishedIn(bucket) > 0);
  if (rows.length === 0) return markup`<p class="muted">There are no figures yet.</p>`;
  const columns = ['Succeeded', 'Failed', 'Median', '95th percentile'];
  return markup`<details><summary>Figures as a table</summary><table>
<thead><tr><th scope="col">From</th>${columns.map((name) => markup`<th scope="col" class="num">${name}</th>`)}</tr></thead>
<tbody>${rows.map(({ at, succeeded, failed, durationMs }) => {
    const { p50, p95 } = durationMs ?? {};
    const cells = [succeeded, failed, ...[p50, p95].map((ms) => (ms === undefined ? '' : duration(ms)))];
    return markup`<tr><th scope="row"><time datetime="${at}">${timeText(at)}</time></th>${cells.map((text) => markup`<td class="num">${text}</td>`)}</tr>`;
  })}</tbody></table></details>`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Windows that the page links to. */
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

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

/** `2026-11-22 01:45`. */
export const timeText = (at: string): string => at.slice(0, 16).replace('T', ' ');
