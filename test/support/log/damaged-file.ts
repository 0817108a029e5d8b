// Damages the file of an embedded log as a failing disk does: a changed byte, a page of zeros.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

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

/** The first offset of a stream's name in the index of the streams. */
export function offsetInIndex(file: string, stream: string): number {
  const offset = offsetsOf(file, stream).find((at) => pageTypeAt(file, at) === 10);
  if (offset === undefined) throw new Error(`${stream} is not in the index`);
  return offset;
}

/** Changes a stream's name in the index: SQLite finds no fault, and reads of the stream do not find its event. */
export function hideInIndex(file: string, stream: string): void {
  flipByte(file, offsetInIndex(file, stream) + stream.length - 1, 0x40);
}

/** Builds the index again from the rows, as the runbook says. */
export function reindex(file: string): void {
  const db = new DatabaseSync(file);
  db.exec('REINDEX');
  db.close();
}
