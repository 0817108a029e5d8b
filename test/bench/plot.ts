// bench.svg: one panel a measure that has points, a line a series; the x axis is logarithmic.
import { scaleLinear, scaleLog } from 'd3-scale';
import { line } from 'd3-shape';
import type { Point } from './rounds.ts';

const PANEL = { width: 520, height: 320, left: 64, right: 140, top: 40, bottom: 45 } as const;
const LABEL_HEIGHT = 14;
const COLOURS = ['#0b5fff', '#c2410c', '#15803d', '#7c3aed', '#be185d', '#0f766e'] as const;
const LABELS: Readonly<Record<string, { readonly title: string; readonly x: string; readonly y: string }>> = {
  P1: { title: 'Executions per second', x: 'callers at once', y: 'calls/s' },
  P7: {
    title: 'Growth of the time of a read',
    x: 'jobs in the read models',
    y: 'times as long as at the smallest size',
  },
};

export function plotOf(points: Readonly<Record<string, readonly Point[]>>): string {
  const panels = Object.entries(points);
  const width = PANEL.width * panels.length;
  const drawn = panels.map(
    ([name, series], n) => `<g transform="translate(${n * PANEL.width} 0)">${panel(name, series)}</g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${PANEL.height}" width="${width}" height="${PANEL.height}" font-family="system-ui, sans-serif" font-size="11">
<title>Measures of this relay and its peers</title>
<rect width="100%" height="100%" fill="#fff"/>
${drawn.join('\n')}
</svg>
`;
}

function panel(name: string, points: readonly Point[]): string {
  const { title, x: xLabel, y: yLabel } = LABELS[name] ?? { title: name, x: '', y: '' };
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const inner = { right: PANEL.width - PANEL.right, bottom: PANEL.height - PANEL.bottom };
  const x = scaleLog([xs[0] ?? 1, xs.at(-1) ?? 10], [PANEL.left, inner.right]);
  const y = scaleLinear([0, Math.max(...points.map((point) => point.y))], [inner.bottom, PANEL.top]).nice(5);
  const path = line<Point>(
    (point) => x(point.x),
    (point) => y(point.y),
  );
  const names = [...new Set(points.map(({ series }) => series))];
  const grid = y
    .ticks(5)
    .map(
      (tick) =>
        `<line x1="${PANEL.left}" x2="${inner.right}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ddd"/><text x="${PANEL.left - 6}" y="${y(tick) + 4}" text-anchor="end">${tick.toLocaleString('en')}</text>`,
    );
  const ticks = xs.map(
    (tick) =>
      `<text x="${x(tick)}" y="${inner.bottom + 16}" text-anchor="middle">${tick.toLocaleString('en')}</text>`,
  );
  const lineOf = (series: string) =>
    points.filter((point) => point.series === series).sort((a, b) => a.x - b.x);
  const labels = apart(
    names.map((series) => y(lineOf(series).at(-1)?.y ?? 0)),
    inner.bottom,
  );
  const lines = names.map((series, n) => {
    const own = lineOf(series);
    const colour = COLOURS[n % COLOURS.length];
    return `<path d="${path(own) ?? ''}" fill="none" stroke="${colour}" stroke-width="2"/>${own.map((point) => `<circle cx="${x(point.x)}" cy="${y(point.y)}" r="3" fill="${colour}"/>`).join('')}<text x="${inner.right + 8}" y="${(labels[n] ?? 0) + 4}" fill="${colour}">${series}</text>`;
  });
  return `<text x="${PANEL.left}" y="20" font-size="14" font-weight="600">${title}</text>
${[...grid, ...ticks].join('')}
<text x="${(PANEL.left + inner.right) / 2}" y="${PANEL.height - 8}" text-anchor="middle">${xLabel}</text>
<text x="14" y="${PANEL.height / 2}" text-anchor="middle" transform="rotate(-90 14 ${PANEL.height / 2})">${yLabel}</text>
${lines.join('')}`;
}

/** The same heights, moved so far that no label covers another, all of them above `bottom`. */
function apart(heights: readonly number[], bottom: number): readonly number[] {
  const moved = [...heights];
  const order = heights.map((_, n) => n).sort((a, b) => (heights[b] ?? 0) - (heights[a] ?? 0));
  let limit = bottom;
  for (const n of order) {
    moved[n] = Math.min(heights[n] ?? 0, limit);
    limit = (moved[n] ?? 0) - LABEL_HEIGHT;
  }
  return moved;
}
