// Reads lines from chunks of any size.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesOf } from '#src/cli/export-file.ts';
import { utf8 } from '#src/domain/encoding.ts';

async function read(bytes: Uint8Array, piece: number, max?: number) {
  // One buffer for all chunks, as a reader of a file may use it.
  const buffer = new Uint8Array(piece);
  async function* chunks() {
    for (let from = 0; from < bytes.length; from += piece) {
      const part = bytes.subarray(from, from + piece);
      buffer.set(part);
      yield buffer.subarray(0, part.length);
    }
  }
  return Array.fromAsync(linesOf(chunks(), max));
}

test('the same lines for chunks of any size', async () => {
  const bytes = utf8('one\n\nzwölf ü€😀\nhalf');
  const lines = [
    { number: 1, text: 'one', end: 4, whole: true },
    { number: 2, text: '', end: 5, whole: true },
    { number: 3, text: 'zwölf ü€😀', end: 22, whole: true },
    { number: 4, text: 'half', end: 26, whole: false },
  ];
  for (let piece = 1; piece <= bytes.length; piece++) assert.deepEqual(await read(bytes, piece), lines);
});

test('a line that is too long or not UTF-8 has no text; the lines after it are read', async () => {
  const bytes = Buffer.concat([utf8('123456789\n12345678\n'), Uint8Array.of(0xff, 10), utf8('ok\n')]);
  for (const piece of [1, 4, 100]) {
    const lines = await read(bytes, piece, 8);
    assert.deepEqual(
      lines.map(({ text, end }) => [text, end]),
      [
        [null, 10],
        ['12345678', 19],
        [null, 21],
        ['ok', 24],
      ],
    );
  }
});

test('a byte order mark is part of its line', async () => {
  const [line] = await read(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61, 10), 5);
  assert.equal(line?.text, '\ufeffa');
});
