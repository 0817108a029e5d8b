// Checks as rows of a table: the result, a label, and the check's name.

import type { Check } from '../../domain/receipt/report.ts';
import { CHECK_LABELS, comparedText } from '../../domain/receipt/texts.ts';
import { element } from './dom.ts';

/** `unchecked`: the check was not possible, or its input was missing. */
export type State = 'running' | 'verified' | 'failed' | 'pending' | 'unchecked';

export type Row = {
  readonly state: State;
  readonly words: string;
  readonly name?: string;
  /** A second line: the reason or the details. */
  readonly more?: string;
};

const PILLS: Readonly<Record<State, readonly [colour: string, word: string]>> = {
  running: ['running', 'running'],
  verified: ['ok', 'verified'],
  failed: ['failed', 'failed'],
  pending: ['warn', 'pending'],
  unchecked: ['muted', 'not checked'],
};

export function pill(state: State): HTMLElement {
  const [colour, word] = PILLS[state];
  return element('span', { class: `pill ${colour}` }, word);
}

export function checkTable(rows: readonly Row[]): HTMLElement {
  const head = ['Result', 'Check'].map((text) => element('th', { scope: 'col' }, text));
  return element(
    'table',
    {},
    element('thead', {}, element('tr', {}, ...head)),
    element('tbody', {}, ...rows.map(tableRow)),
  );
}

function tableRow({ state, words, name, more }: Row): HTMLElement {
  const said = element('td', {}, words);
  if (name !== undefined) said.append(' ', element('code', { class: 'muted' }, name));
  if (more !== undefined) said.append(element('br'), element('span', { class: 'note' }, more));
  return element('tr', {}, element('td', {}, pill(state)), said);
}

export function rowOf(check: Check): Row {
  const { name, ok, details } = check;
  const words = CHECK_LABELS[name];
  if (name === 'receipt_logged') return { ...logRow(check), name };
  if (ok) return { state: 'verified', words, name };
  const compared = comparedText(details);
  return {
    state: 'failed',
    words,
    name,
    ...(compared === null ? {} : { more: compared }),
  };
}

const PROBLEMS: Readonly<Record<string, string>> = {
  future: 'It is not in the log, and its date is more than a day ahead of this clock.',
  malformed: 'The given text is no proof file.',
  checkpoint: 'No checkpoint key of the key set has signed the checkpoint of the proof.',
  origin: 'The proof is of another log than the one that the receipt names.',
  inclusion: 'The receipt is not at the index that the proof states.',
};

/** A receipt that is not yet in the log and not late is pending. */
function logRow({ ok, details }: Check): Row {
  const words = 'It is in the transparency log';
  const facts: Readonly<Record<string, unknown>> =
    typeof details === 'object' && details !== null ? { ...details } : {};
  const known = PROBLEMS[String(facts.problem)];
  if (known !== undefined) return { state: 'failed', words, more: known };
  if (typeof facts.dueBy === 'number') {
    const dueBy = new Date(facts.dueBy * 1000).toISOString();
    return ok
      ? { state: 'pending', words, more: `Not yet; it is due by ${dueBy}. That is no error.` }
      : { state: 'failed', words, more: `It is late: it was due by ${dueBy}.` };
  }
  if (!ok) return { state: 'failed', words, more: 'There is no receipt.' };
  const more = `Index ${facts.index} in the first ${facts.size} entries of ${facts.origin}.`;
  return { state: 'verified', words, more };
}

/** `failed` if a row is; else `unchecked` if a row is; a pending row counts as verified. */
export function overall(rows: readonly Row[]): 'failed' | 'unchecked' | 'verified' {
  if (rows.some(({ state }) => state === 'failed')) return 'failed';
  return rows.some(({ state }) => state === 'unchecked') ? 'unchecked' : 'verified';
}
