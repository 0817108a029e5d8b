// soak.svg: for each tier the 99th percentile of a call, the memory and the descriptors of the measured process, by minute.
import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import type { Minute, TierResult } from './tier.ts';

const PANEL = { width: 420, height: 240, left: 56, right: 16, top: 36, bottom: 36 } as const;

type Series = { readonly title: string; readonly value: (minute: Minute) => number | null };

const SERIES: readonly Series[] = [
  { title: 'p99 of a call, ms', value: ({ p99 }) => p99 },
  { title: 'memory, MB', value: ({ memory }) => (memory === null ? null : memory.rss / 2 ** 20) },
  {
    title: 'live objects, thousands',
    value: ({ memory }) => (memory === null ? null : memory.objects / 1000),
  },
  { title: 'file descriptors', value: ({ memory }) => memory?.descriptors ?? null },
];

export function soakPlot(tiers: readonly TierResult[]): string {
  const [width, height] = [PANEL.width * SERIES.length, PANEL.height * tiers.length];
  const panels = tiers.flatMap((tier, row) =>
    SERIES.map(
      (series, column) =>
        `<g transform="translate(${column * PANEL.width} ${row * PANEL.height})">${panel(tier, series)}</g>`,
    ),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">
<title>A soak of this relay, minute by minute</title>
<rect width="100%" height="100%" fill="#fff"/>
${panels.join('\n')}
</svg>
`;
}

function panel({ tier, minutes }: TierResult, { title, value }: Series): string {
  const points = minutes.flatMap((minute): [number, number][] => {
    const y = value(minute);
    return y === null ? [] : [[minute.minute, y]];
  });
  const [right, bottom] = [PANEL.width - PANEL.right, PANEL.height - PANEL.bottom];
  const x = scaleLinear([1, Math.max(2, minutes.length)], [PANEL.left, right]);
  const y = scaleLinear([0, Math.max(1, ...points.map(([, each]) => each))], [bottom, PANEL.top]).nice(4);
  const path = line<[number, number]>(
    ([minute]) => x(minute),
    ([, each]) => y(each),
  )(points);
  const grid = y
    .ticks(4)
    .map(
      (tick) =>
        `<line x1="${PANEL.left}" x2="${right}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ddd"/><text x="${PANEL.left - 6}" y="${y(tick) + 4}" text-anchor="end">${tick.toLocaleString('en')}</text>`,
    );
  const ticks = x
    .ticks(6)
    .map((tick) => `<text x="${x(tick)}" y="${bottom + 16}" text-anchor="middle">${tick}</text>`);
  return `<text x="${PANEL.left}" y="20" font-size="13" font-weight="600">${tier}: ${title}</text>
${[...grid, ...ticks].join('')}
<path d="${path ?? ''}" fill="none" stroke="#0b5fff" stroke-width="2"/>`;
}
