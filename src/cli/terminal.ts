// What the reader sees: lines, marks, colours (on a terminal only, never with NO_COLOR), and nothing that a file or a
// server could use to steer the terminal.
import { styleText } from 'node:util';

export type Style = 'green' | 'red' | 'yellow' | 'dim' | 'bold';

/** `styleText` asks the stream, NO_COLOR and TERM; FORCE_COLOR alone does not colour a pipe. */
export function paint(style: Style, text: string): string {
  return process.stdout.isTTY ? styleText(style, text, { stream: process.stdout }) : text;
}

export const mark = (ok: boolean): string => (ok ? paint('green', '✓') : paint('red', '✗'));

export function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** One line on stderr. */
export function complain(message: string): void {
  process.stderr.write(`relay: ${plain(message)}\n`);
}

/** Text of strangers: control characters (C0, DEL, C1) and those that turn the direction of writing, spelled out. */
export function plain(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

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

/** `relay … | head` closes our output early: that is no fault. */
export function surviveClosedPipe(): void {
  process.stdout.on('error', (error: Error) => {
    if ('code' in error && error.code === 'EPIPE') process.exit();
    throw error;
  });
}
