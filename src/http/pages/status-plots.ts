// The plots of the status page: executions, failure rate and duration over the window, each with its figures as a table.
import { bucketMs, type MonitoringResponse } from '#src/http/routes/monitoring.ts';
import { type Markup, markup } from './markup.ts';
import { bars, type Colour, curve, type Plot, plot } from './plot.ts';

type Bucket = MonitoringResponse['series'][number];

export function windowPlots({ windowMs, series }: MonitoringResponse): readonly Markup[] {
  const size = bucketMs(windowMs);
  const each = duration(size);
  const over = `in ${count(series.length, 'bucket')} of ${each} over the last ${windowName(windowMs)}`;
  const begin = ({ at }: Bucket) => Date.parse(at);
  const middle = (bucket: Bucket) => begin(bucket) + size / 2;
  const [first] = series;
  const last = series.at(-1);
  const span = { from: first ? begin(first) : 0, to: (last ? begin(last) : 0) + size };
  const finished = series.filter((bucket) => finishedIn(bucket) > 0);
  const nothing = finished.length === 0 ? 'No execution finished in this window.' : null;
  const timed = series.flatMap(({ at, durationMs }) => (durationMs === null ? [] : [{ at, ...durationMs }]));
  const slowest = Math.max(0, ...timed.map(({ p95 }) => p95));
  const most = Math.max(0, ...series.map(finishedIn));
  return [
    figure({
      ...span,
      id: 'executions',
      title: `Executions finished, per ${each}`,
      description: `${sum(series.map(({ succeeded }) => succeeded))} succeeded and ${sum(series.map(({ failed }) => failed))} failed ${over}; at most ${most} in one.`,
      keys: { accent: 'succeeded', bad: 'failed' },
      max: most,
      unit: String,
      whole: true,
      nothing,
      marks: (scales) => {
        const stacked = series.map((of) => ({ at: begin(of), values: [of.succeeded, of.failed] }));
        return bars(scales, stacked, size, ['accent', 'bad']);
      },
      columns: ['Succeeded', 'Failed'],
      rows: finished.map(({ at, succeeded, failed }) => [at, String(succeeded), String(failed)]),
    }),
    figure({
      ...span,
      id: 'failure-rate',
      title: `Failure rate, per ${each}`,
      description: `The share of finished executions that failed, ${over}; none where nothing finished.`,
      keys: { bad: 'failed of all finished' },
      max: 1,
      unit: percent,
      nothing,
      marks: (scales) => {
        const rates = series.map((of) => ({ at: middle(of), value: finishedIn(of) > 0 ? rateOf(of) : null }));
        return curve(scales, rates, 'bad');
      },
      columns: ['Failure rate'],
      rows: finished.map((of) => [of.at, percent(rateOf(of))]),
    }),
    figure({
      ...span,
      id: 'durations',
      title: `Duration, per ${each}`,
      description: `Median and 95th percentile ${over}; the highest is ${duration(slowest)}. Estimates from counted classes.`,
      keys: { accent: 'median', warn: '95th percentile (dashed)' },
      // At least what its ticks can distinguish.
      max: slowest === 0 ? 1000 : Math.max(1, slowest),
      unit: duration,
      nothing: timed.length === 0 ? 'No duration is known in this window.' : null,
      marks: (scales) => {
        const points = (percentile: 'p50' | 'p95') =>
          series.map((of) => ({ at: middle(of), value: of.durationMs?.[percentile] ?? null }));
        return markup`${curve(scales, points('p50'), 'accent')}${curve(scales, points('p95'), 'warn', true)}`;
      },
      columns: ['Median', '95th percentile'],
      rows: timed.map(({ at, p50, p95 }) => [at, duration(p50), duration(p95)]),
    }),
  ];
}

const finishedIn = ({ succeeded, failed }: Bucket) => succeeded + failed;
const rateOf = (bucket: Bucket) => bucket.failed / finishedIn(bucket);
const sum = (numbers: readonly number[]) => numbers.reduce((before, number) => before + number, 0);

type Figure = Plot & {
  /** The legend: what each colour is. */
  readonly keys: Readonly<Partial<Record<Colour, string>>>;
  readonly columns: readonly string[];
  /** Under `columns`, after the time. */
  readonly rows: readonly (readonly [at: string, ...figures: readonly string[]])[];
};

function figure({ keys, columns, rows, ...drawn }: Figure): Markup {
  const key = Object.entries(keys).map(
    ([colour, words]) => markup`<span class="key ${colour}"></span>${words}&ensp; `,
  );
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
