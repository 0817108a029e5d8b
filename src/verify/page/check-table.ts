// The table of checks, as the proof page writes it on the server: the result, a label, and the check's name.

import { type CheckRow, type CheckState, countText } from '../../domain/receipt/texts.ts';
import { element } from './dom.ts';

export function pill(state: CheckState): HTMLElement {
  return element('span', { class: `pill ${state}` }, state === 'unchecked' ? 'not checked' : state);
}

export function checkTable(rows: readonly CheckRow[]): HTMLElement {
  const head = ['Result', 'Check'].map((text) => element('th', { scope: 'col' }, text));
  const table = element(
    'table',
    { class: 'checks' },
    element('thead', {}, element('tr', {}, ...head)),
    element('tbody'),
  );
  showRows(table, rows);
  return table;
}

/** A row replaces that of the same check, unless that check failed: what the relay itself refuses stays refused. */
export function showRows(table: HTMLTableElement, rows: readonly CheckRow[]): void {
  for (const { state, label, name, more } of rows) {
    const said = element('td', {}, label);
    if (name !== null) said.append(' ', element('code', { class: 'muted' }, name));
    if (more !== null) said.append(element('br'), element('span', { class: 'note' }, more));
    const row = element(
      'tr',
      { 'data-check': name ?? '', 'data-state': state },
      element('td', {}, pill(state)),
      said,
    );
    const before = table.querySelector(`[data-check="${name}"]`);
    if (before === null) table.tBodies[0]?.append(row);
    else if (before.querySelector('.failed') === null) before.replaceWith(row);
  }
}

/** How many of the table's checks hold. */
export const tableCount = (table: HTMLTableElement): string =>
  countText(
    [...table.querySelectorAll<HTMLElement>('[data-state]')].map(
      ({ dataset }) => dataset.state as CheckState,
    ),
  );

/** `failed` if a row is; else `unchecked` if a row is; a pending row counts as verified. */
export function overall(rows: readonly CheckRow[]): 'failed' | 'unchecked' | 'verified' {
  if (rows.some(({ state }) => state === 'failed')) return 'failed';
  return rows.some(({ state }) => state === 'unchecked') ? 'unchecked' : 'verified';
}
