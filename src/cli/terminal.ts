// Output: lines, marks, tables, progress, JSON. Colours appear on a terminal only (never with NO_COLOR). Text from
// outside cannot control the terminal.

import { styleText } from 'node:util';
import { SingleBar } from 'cli-progress';
import { systemCode } from '#src/lib/system-error.ts';
import { EXIT } from './exit.ts';

/** `styleText` reads the stream, NO_COLOR and TERM; FORCE_COLOR alone does not colour a pipe. */
export function paint(style: 'green' | 'red' | 'yellow' | 'dim' | 'bold', text: string): string {
  return process.stdout.isTTY ? styleText(style, text, { stream: process.stdout }) : text;
}

export const mark = (ok: boolean): string => (ok ? paint('green', '✓') : paint('red', '✗'));

export const heading = (text: string): string => paint('bold', text);

/** A name and its value, indented. */
export const row = (name: string, value: string): string => `  ${paint('dim', name.padEnd(18))}${value}`;

/** `1 leaf`, `2 leaves`. */
export const numbered = (count: number, singular: string, many = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : many}`;

export function print(...lines: readonly string[]): void {
  write(`${lines.join('\n')}\n`);
}

/** Prints to standard output, or to standard error if standard output is for machines. */
export type Print = (line: string) => void;

export const printer = (toStderr: boolean): Print =>
  toStderr ? (line) => void process.stderr.write(`${line}\n`) : print;

/** Deno throws on a failed write, Bun reports it to the stream: both are handled by `endWithOutput`. */
function write(text: string, done: () => void = () => undefined): void {
  try {
    process.stdout.write(text, (error) => (error ? process.stdout.emit('error', error) : done()));
  } catch (error) {
    process.stdout.emit('error', error);
  }
}

export function printJson(value: unknown): void {
  print(jsonText(value, 2));
}

/** Prints each text on a line of its own, as fast as standard output takes them: none are collected in memory. */
export async function printAll(lines: AsyncIterable<string>): Promise<void> {
  let block = '';
  for await (const line of lines) {
    block += `${line}\n`;
    if (block.length < BLOCK_CHARACTERS) continue;
    await written(block);
    block = '';
  }
  if (block !== '') await written(block);
}

const BLOCK_CHARACTERS = 65_536;

/** Resolves when the text was taken. If it cannot be, the process ends, see `endWithOutput`. */
const written = (text: string): Promise<void> => new Promise((resolve) => write(text, resolve));

/** The item `index` of an array that is printed line by line: the next line is an item, or `]`. */
export const jsonItem = (value: unknown, index: number): string =>
  `${index === 0 ? '[\n' : ', '}${jsonText(value)}`;

/** RFC 4180, without the line end. */
export const csvLine = (cells: readonly (string | number | null)[]): string =>
  cells
    .map((cell) => plain(String(cell ?? '')))
    .map((cell) => (/[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
    .join(',');

/** JSON in which control and invisible characters are escaped. Throws as `JSON.stringify` does. */
export const jsonText = (value: unknown, indent = 0): string =>
  // JSON.stringify escapes C0 within strings; outside of strings they are the line ends of the indented form.
  JSON.stringify(value, null, indent).replace(INVISIBLE, (found) => (found < ' ' ? found : escaped(found)));

export function printError(message: string): void {
  try {
    process.stderr.write(`relay: ${plain(message)}\n`);
  } catch {
    // Standard error is closed: the exit code remains.
  }
}

/**
 * Escapes control characters (C0, DEL, C1), characters that change the direction of writing, have no width or are
 * ignored, and lone surrogates.
 */
export const plain = (text: string): string => text.replace(INVISIBLE, escaped);

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** As in JSON: above U+FFFF as a surrogate pair. */
const escaped = (found: string): string =>
  found
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

const SHOWN_CHARACTERS = 240;

/** Any JSON value on one line, shortened if it is long. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : json(value);
  const cut = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  return plain(cut);
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return '(nested too deeply to show)';
  }
}

/** Lines of a table with aligned columns; the last column is not padded. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): [titles: string, ...rows: string[]] {
  const cells = rows.map((cells) => cells.map(plain));
  const widths = titles.map((title, i) =>
    Math.max(title.length, ...cells.map((line) => line[i]?.length ?? 0)),
  );
  const aligned = (line: readonly string[]) =>
    line
      .map((cell, i) => (i === titles.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return [heading(aligned(titles)), ...cells.map(aligned)];
}

type Records<N extends string> = readonly Readonly<Record<N, string | number | null>>[];

/** The table of these members of each record; `-` in place of null. */
export const recordTable = <N extends string>(names: readonly N[], records: Records<N>) =>
  table(
    names,
    records.map((record) => names.map((name) => String(record[name] ?? '-'))),
  );

/** The same as CSV, empty in place of null. */
export const csvTable = <N extends string>(names: readonly N[], records: Records<N>) =>
  [names, ...records.map((record) => names.map((name) => record[name]))].map(csvLine);

export type AuditProgress = {
  readonly events: number;
  /** Events that this run has handled. */
  readonly eventsHere: number;
  /** 0 to 1; null if unknown. */
  readonly share: number | null;
};

export type ShownProgress = { show(progress: AuditProgress): void; end(): void };

const LINE_EVERY_MS = 5000;

/** Shows a bar where standard error is a terminal, elsewhere a line every 5 s by `write`. */
export function showProgress(
  label: string,
  write: Print,
  terminal: NodeJS.WriteStream = process.stderr,
  now: () => number = () => performance.now(),
): ShownProgress {
  const bar = terminal.isTTY ? newBar(label, terminal) : null;
  let begun: number | null = null;
  let writtenAt = 0;
  return {
    show(progress) {
      const at = now();
      const first = begun === null;
      begun ??= at;
      const text = progressText(progress, at - begun);
      const percent = percentOf(progress) ?? 0;
      if (bar !== null) {
        if (first) bar.start(100, percent, { text });
        else bar.update(percent, { text });
      } else if (first) {
        if (progress.events > 0) write(`${label}: continuing after ${progress.events} events`);
        writtenAt = at;
      } else if (at - writtenAt >= LINE_EVERY_MS) {
        write(`${label}: ${text}`);
        writtenAt = at;
      }
    },
    end: () => bar?.stop(),
  };
}

/** At most 99 before the end: work remains after the last event. */
const percentOf = ({ share }: AuditProgress): number | null =>
  share === null ? null : Math.min(99, Math.floor(share * 100));

/** `elapsedMs`: since this run showed its first progress. */
export function progressText(progress: AuditProgress, elapsedMs: number): string {
  const rate = Math.round(progress.eventsHere / Math.max(0.001, elapsedMs / 1000));
  const percent = percentOf(progress);
  return `${progress.events} events, ${rate} events/s${percent === null ? '' : `, ${percent} %`}`;
}

const newBar = (label: string, stream: NodeJS.WriteStream) =>
  new SingleBar({
    format: `${label} {bar} {text}`,
    stream,
    clearOnComplete: true,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
  });

/**
 * Called once, before anything is written. If standard output can no longer be written (`relay … | head`, a full disk),
 * the process ends with exit 1 if a problem was found by then, else 2.
 */
export function endWithOutput(): void {
  process.stdout.on('error', (error: unknown) => {
    const code = systemCode(error) ?? 'unknown';
    // EPIPE: the reader has closed the pipe on purpose.
    if (code !== 'EPIPE') printError(`standard output cannot be written (${code})`);
    process.exit(process.exitCode === EXIT.foundWrong ? EXIT.foundWrong : EXIT.couldNotRun);
  });
  process.stderr.on('error', () => undefined);
}
