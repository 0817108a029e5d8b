// A plot of the status page with its key and its figures as a table: what is drawn can also be read.
import { type Markup, markup } from './markup.ts';
import { type Colour, type Plot, plot } from './plot.ts';
import { timeText } from './status-text.ts';

type Key = readonly [colour: Colour, words: string];

export type Figure = Plot & {
  readonly keys: readonly Key[];
  readonly columns: readonly string[];
  /** Under `columns`, after the time. */
  readonly rows: readonly (readonly [at: string, ...figures: readonly string[]])[];
};

/** Where an axis of times ends: at no less than its ticks can tell apart. */
export const axisEnd = (ms: number) => (ms === 0 ? 1000 : Math.max(1, ms));

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((before, number) => before + number, 0);

export function figure({ keys, columns, rows, ...drawn }: Figure): Markup {
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
