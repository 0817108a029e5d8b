// What the reader sees: lines, marks, colours (on a terminal only, never with NO_COLOR), and nothing that a file or a
// server could use to steer the terminal, or to hide in.
import { styleText } from 'node:util';
import { EXIT, type ExitCode, systemCode } from './exit.ts';

export type Style = 'green' | 'red' | 'yellow' | 'dim' | 'bold';

/** `styleText` asks the stream, NO_COLOR and TERM; FORCE_COLOR alone does not colour a pipe. */
export function paint(style: Style, text: string): string {
  return process.stdout.isTTY ? styleText(style, text, { stream: process.stdout }) : text;
}

export const mark = (ok: boolean): string => (ok ? paint('green', '✓') : paint('red', '✗'));

export function print(...lines: readonly string[]): void {
  write(`${lines.join('\n')}\n`);
}

/** As it is; resolves when whoever reads has taken it. */
export const printWhole = (text: string): Promise<void> => new Promise((resolve) => write(text, resolve));

/** Deno throws at once where a file takes no more, Bun tells the stream: both end as `endWithOutput` has it. */
function write(text: string, onTaken: () => void = () => undefined): void {
  try {
    process.stdout.write(text, (error) => (error ? process.stdout.emit('error', error) : onTaken()));
  } catch (error) {
    process.stdout.emit('error', error);
  }
}

export function printJson(value: unknown): void {
  print(jsonText(value, 2));
}

/** JSON that steers no terminal either: the same value, with `\uXXXX` where it matters. Throws as `JSON.stringify` does. */
export const jsonText = (value: unknown, indent = 0): string =>
  // Within strings C0 is spelled out already; around them stand the line ends of the indented form.
  JSON.stringify(value, null, indent).replace(UNSEEN, (found) => (found < ' ' ? found : spelled(found)));

/** One line on stderr. */
export function complain(message: string): void {
  try {
    process.stderr.write(`relay: ${plain(message)}\n`);
  } catch {
    // Nobody is left to hear it: the exit code says it.
  }
}

/**
 * Text of strangers: whatever steers or cannot be seen is spelled out, control characters (C0, DEL, C1), those that turn
 * the direction of writing, have no width or are ignored, and halves of characters.
 */
export const plain = (text: string): string => text.replace(UNSEEN, spelled);

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** As JSON spells it: beyond U+FFFF in two halves. */
const spelled = (found: string): string =>
  found
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

const SHOWN_CHARACTERS = 240;

/** Any JSON value on one line, cut where it is long. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : json(value);
  const cut = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  return plain(cut);
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return '(nested too deep to show)';
  }
}

/**
 * Once, before anything is written. `relay … | head` closes our output early, a disk is full: the command ends there, and
 * never as if all had been told. `known`: how it would end by what it knows so far.
 */
export function endWithOutput(known: () => ExitCode): void {
  process.stdout.on('error', (error: unknown) => {
    const code = systemCode(error) ?? 'unknown';
    // Who has read enough knows it.
    if (code !== 'EPIPE') complain(`standard output cannot be written (${code})`);
    process.exit(known() === EXIT.foundWrong ? EXIT.foundWrong : EXIT.couldNotRun);
  });
  process.stderr.on('error', () => undefined);
}
