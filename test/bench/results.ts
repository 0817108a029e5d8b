// What a run prints and stores: the table, bench.json, and the table of README.md, whose figures all come from bench.json.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootPath } from '#test/support/process/runtime.ts';
import type { Point, Row, Size } from './rounds.ts';

export type Results = {
  readonly at: string;
  readonly size: Size;
  readonly machine: string;
  readonly bun: string;
  /** Load averages over 1, 5 and 15 minutes, before and after. */
  readonly load: readonly (readonly number[])[];
  /** By measure: how long it took. */
  readonly seconds: Readonly<Record<string, number>>;
  readonly rows: readonly Row[];
  readonly notes: Readonly<Record<string, readonly string[]>>;
  readonly points: Readonly<Record<string, readonly Point[]>>;
};

export const RESULTS_FILE = join(rootPath, 'bench.json');
export const README_FILE = join(rootPath, 'README.md');

export const readResults = (): Results => JSON.parse(readFileSync(RESULTS_FILE, 'utf8'));

/** A row of the table is a line. */
export function resultsText({ rows, ...rest }: Results): string {
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(5)) : value;
  const head = JSON.stringify(rest, rounded, 2).slice(0, -2);
  const lines = rows.map((each) => `    ${JSON.stringify(each, rounded)}`);
  return `${head},\n  "rows": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** With the notes of the measures below. */
export function tableOf({ rows, notes, size }: Results): string {
  const head = ['', 'measure', 'ours', 'peer', 'compared', 'least to most', 'goal', ''];
  const lines = rows.map(({ measure, title, unit, ours, peer, peers, compared, goal, reached }) => [
    measure,
    title,
    `${figure(ours.median)} ${unit}`,
    peer === '' ? '' : `${figure(peers.median)} ${unit} (${peer})`,
    comparison(goal.kind, compared.median, unit),
    `${figure(compared.least)} to ${figure(compared.most)}`,
    goal.value === null ? '' : `${goal.at === 'least' ? '≥' : '≤'} ${figure(goal.value)}`,
    reached === null || size !== 'full' ? '' : reached ? 'reached' : 'missed',
  ]);
  const cells = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const table = cells.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const footnotes = Object.entries(notes).flatMap(([name, texts]) => texts.map((text) => `${name}: ${text}`));
  if (size !== 'full') footnotes.push(`--${size}: too few calls, rounds and jobs for results.`);
  return [...table, '', ...footnotes].join('\n');
}

function comparison(kind: Row['goal']['kind'], value: number, unit: string): string {
  if (kind === 'ratio') return `× ${figure(value)}`;
  return `${kind === 'difference' && value > 0 ? '+' : ''}${figure(value)} ${unit}`;
}

/** The rows of README's table: how their titles begin, and how they are named there if not by their titles. */
export const IN_README = [
  ['P1', 'calls, c = 64', 'calls, 64 callers'],
  ['P1', 'p50, c = 1', 'a call, 1 caller, median'],
  ['P1e', 'calls on', null],
  ['P2', 'events', 'appends'],
  ['P3', 'events', 'rebuild, events'],
  ['P4', 'job', 'GET job of 10⁶'],
  ['P5', 'GET verify, again', 'GET verify'],
  ['P6', 'start', 'start'],
  ['P7', 'monitoring', 'monitoring at 10⁶ jobs'],
  ['P8', 'events', 'audit, events'],
  ['P9', 'paid calls', 'paid calls'],
] as const;

/** Throws if a row is missing. */
export function readmeTable({ rows, machine, bun }: Pick<Results, 'rows' | 'machine' | 'bun'>): string {
  const lines = IN_README.map(([name, begin, text]) => {
    const found = rows.find(({ measure, title }) => measure === name && title.startsWith(begin));
    if (found === undefined) throw new Error(`no row ${name} ${begin}`);
    const { title, ours, peer, unit, compared, goal } = found;
    return `| ${text ?? title} | ${figure(ours.median)} ${unit} | ${comparison(goal.kind, compared.median, unit)} (${peer}) |`;
  });
  return `Measured on ${machine}, Bun ${bun} ([bench.json](bench.json), [plot](bench.svg)):

| | relay | against a peer |
|---|---|---|
${lines.join('\n')}

`;
}

const SECTION = /(?<=<!-- bench -->\n)[\s\S]*?(?=<!-- \/bench -->)/;

/** What README.md has between its two marks. */
export const readmeSection = (readme: string): string | null => SECTION.exec(readme)?.[0] ?? null;

export function withReadmeSection(readme: string, results: Results): string {
  if (readmeSection(readme) === null) throw new Error('README.md has no marks for the table');
  return readme.replace(SECTION, () => readmeTable(results));
}

/** Three significant digits, or a whole number from 100. */
const figure = (value: number): string =>
  Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
