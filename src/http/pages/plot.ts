// Plots as inline SVG: a frame with readable axes, and bars or lines in it. They load nothing, take their colours from
// the page's style sheet, and say in words what they show. Times are UTC.
import { type ScaleLinear, type ScaleTime, scaleLinear, scaleUtc } from 'd3-scale';
import { line, stack } from 'd3-shape';
import { type Markup, markup } from './markup.ts';

/** In units of the view box: narrow, so that text stays readable on a phone. */
export const VIEW = { width: 360, height: 200 } as const;
const INNER = { left: 56, right: 352, top: 12, bottom: 172 } as const;

export type Scales = { readonly x: ScaleTime<number, number>; readonly y: ScaleLinear<number, number> };

export type Plot = {
  /** Of this plot alone on its page. */
  readonly id: string;
  readonly title: string;
  /** For readers who do not see the plot. */
  readonly description: string;
  /** ms since the Unix epoch. */
  readonly from: number;
  readonly to: number;
  /** The largest value; the axis begins at 0. */
  readonly max: number;
  readonly unit: (value: number) => string;
  /** Ticks at whole numbers only. */
  readonly whole?: boolean;
  /** Shown instead of `marks` if there is nothing to draw; null otherwise. */
  readonly nothing: string | null;
  readonly marks: (scales: Scales) => Markup;
};

export function plot({ id, title, description, nothing, marks, ...axes }: Plot): Markup {
  const scales = scalesOf(axes);
  const centre = (INNER.left + INNER.right) / 2;
  const middle = (INNER.top + INNER.bottom) / 2;
  const drawn =
    nothing === null
      ? marks(scales)
      : markup`<text x="${centre}" y="${middle}" text-anchor="middle">${nothing}</text>`;
  return markup`<svg viewBox="0 0 ${VIEW.width} ${VIEW.height}" role="img" aria-labelledby="${id}-title ${id}-text">
<title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>
${valueAxis(scales, axes)}${timeAxis(scales)}${drawn}</svg>`;
}

function scalesOf({ from, to, max }: Pick<Plot, 'from' | 'to' | 'max'>): Scales {
  return {
    x: scaleUtc([from, to], [INNER.left, INNER.right]),
    y: scaleLinear([0, max > 0 ? max : 1], [INNER.bottom, INNER.top]).nice(TICKS),
  };
}

const TICKS = 4;

function valueAxis({ y }: Scales, { unit, whole = false }: Pick<Plot, 'unit' | 'whole'>): Markup {
  const ticks = y.ticks(TICKS).filter((value) => !whole || Number.isInteger(value));
  return markup`${ticks.map((value) => {
    const at = short(y(value));
    return markup`<path class="stroke-${value === 0 ? 'line' : 'grid'}" d="M${INNER.left} ${at}H${INNER.right}"/>
<text x="${INNER.left - 6}" y="${at + 4}" text-anchor="end">${unit(value)}</text>`;
  })}`;
}

function timeAxis({ x }: Scales): Markup {
  // Whole minutes: labels have no seconds.
  const ticks = x.ticks(TICKS).filter((time) => time.getUTCSeconds() === 0);
  return markup`${ticks.map((time) => {
    const at = short(x(time));
    // Labels at the edges would leave the view.
    const anchor = at > INNER.right - 20 ? 'end' : 'middle';
    return markup`<path class="stroke-line" d="M${at} ${INNER.bottom}v4"/>
<text x="${at}" y="${INNER.bottom + 18}" text-anchor="${anchor}">${timeText(time)}</text>`;
  })}`;
}

/** The time of day, and at midnight the day. */
function timeText(time: Date): string {
  const iso = time.toISOString();
  return iso.slice(11, 16) === '00:00'
    ? `${Number(iso.slice(8, 10))} ${MONTHS[time.getUTCMonth()]}`
    : iso.slice(11, 16);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A mark's colour, by its name in the style sheet. */
export type Colour = 'accent' | 'bad' | 'warn';

/** `values`: from the axis upwards, one of each colour. */
export type Bar = { readonly at: number; readonly values: readonly number[] };

/** Bars from `at` on, `size` ms wide. */
export function bars(
  { x, y }: Scales,
  entries: readonly Bar[],
  size: number,
  colours: readonly Colour[],
): Markup {
  const layers = stack<Bar, number>()
    .keys(colours.keys())
    .value(({ values }, key) => values[key] ?? 0)([...entries]);
  return markup`${layers.map(
    (layer) =>
      markup`<g class="fill-${colours[layer.key] ?? 'accent'}">${layer
        .filter(([low, high]) => high > low)
        .map((part) => {
          const left = Math.max(INNER.left, x(part.data.at));
          const width = Math.max(1, Math.min(INNER.right, x(part.data.at + size)) - left - 0.6);
          const [bottom, top] = [y(part[0]), y(part[1])];
          return markup`<rect x="${short(left)}" y="${short(top)}" width="${short(width)}" height="${short(bottom - top)}"/>`;
        })}</g>`,
  )}`;
}

export type Point = { readonly at: number; readonly value: number | null };

/** Points, and a line where neighbours have values. */
export function curve({ x, y }: Scales, points: readonly Point[], colour: Colour, dashed = false): Markup {
  const known = points.flatMap(({ at, value }) => (value === null ? [] : [[x(at), y(value)] as const]));
  const path = line<Point>(
    ({ at }) => x(at),
    ({ value }) => y(value ?? 0),
  )
    .defined(({ value }) => value !== null)
    .digits(1)([...points]);
  const dash = dashed ? { markup: ' stroke-dasharray="5 3"' } : '';
  return markup`<path class="stroke-${colour}" fill="none" stroke-width="1.5" stroke-linejoin="round"${dash} d="${path ?? ''}"/>
<g class="fill-${colour}">${known.map(([cx, cy]) => markup`<circle cx="${short(cx)}" cy="${short(cy)}" r="1.8"/>`)}</g>`;
}

/** A tenth of a unit is less than a pixel. */
const short = (value: number): number => Math.round(value * 10) / 10;
