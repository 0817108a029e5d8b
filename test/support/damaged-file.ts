// Damages the file of an embedded log as a failing disk does: a changed byte, a page of zeros.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

export const PAGE_BYTES = 4096;

/** Offset of the only place in the file with this text. */
export function offsetOf(file: string, text: string): number {
  const bytes = readFileSync(file);
  const at = bytes.indexOf(text);
  if (at < 0 || bytes.indexOf(text, at + 1) >= 0) throw new Error(`${text} is not in the file exactly once`);
  return at;
}

/** All offsets of a text: that of a stream's name is in the row of each event, and in the index. */
export function offsetsOf(file: string, text: string): readonly number[] {
  const bytes = readFileSync(file);
  const found: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) found.push(at);
  return found;
}

export function flipByte(file: string, offset: number, mask = 1): void {
  overwrite(file, offset, Uint8Array.of((readFileSync(file)[offset] ?? 0) ^ mask));
}

export function zeroPageAt(file: string, offset: number): void {
  overwrite(file, offset - (offset % PAGE_BYTES), new Uint8Array(PAGE_BYTES));
}

function overwrite(file: string, offset: number, bytes: Uint8Array): void {
  const opened = openSync(file, 'r+');
  writeSync(opened, bytes, 0, bytes.length, offset);
  closeSync(opened);
}

/** 13: a leaf of the rows. 10: a leaf of an index (SQLite's file format, 1.6). */
export const pageTypeAt = (file: string, offset: number): number =>
  readFileSync(file)[offset - (offset % PAGE_BYTES)] ?? 0;
