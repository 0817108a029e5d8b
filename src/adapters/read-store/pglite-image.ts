// PGlite's empty data directory, made in advance by build-pglite-image.ts: initdb would take seconds of a core and peak
// near 1 GB at the first start. It contains no schema of the service, so it is rebuilt only for another release of PGlite.
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createBrotliDecompress } from 'node:zlib';
import { assetPath } from '#src/assets.ts';

export const PGLITE_IMAGE = assetPath('src/adapters/read-store/pglite-image.tar.br');

/** No other process reads these files, and after a power loss their rows are replayed from the log. */
export const PGLITE_SETTINGS = [
  'shared_buffers=16MB',
  'max_connections=8',
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'wal_buffers=1MB',
  'min_wal_size=32MB',
  'max_wal_size=128MB',
];

/** A tar archive consists of blocks: a header, then the content of the file, padded. */
const BLOCK = 512;

/** Writes the files of the image into `directory`, which must not exist. */
export async function unpackPgliteImage(directory: string): Promise<void> {
  const source = Readable.from([readFileSync(PGLITE_IMAGE)]);
  const unpacked = createBrotliDecompress({ chunkSize: 256 * 1024 });
  source.once('error', (error) => unpacked.destroy(error));
  const archive = tarWriter(directory);
  try {
    for await (const chunk of source.pipe(unpacked)) archive.write(chunk);
  } finally {
    archive.end();
  }
}

/** Writes a file as its bytes arrive: a whole one in memory would be 16 MB. */
function tarWriter(directory: string): { write(bytes: Uint8Array): void; end(): void } {
  const header = Buffer.alloc(BLOCK);
  let filled = 0;
  let file: number | null = null;
  let content = 0;
  let padding = 0;
  const end = () => {
    if (file !== null) closeSync(file);
    file = null;
  };
  const begin = () => {
    const entry = readHeader(header);
    if (entry === null) return;
    const path = join(directory, entry.name);
    if (entry.isDirectory) mkdirSync(path, { recursive: true, mode: 0o700 });
    else file = openSync(path, 'wx', 0o600);
    content = entry.size;
    padding = (BLOCK - (entry.size % BLOCK)) % BLOCK;
    if (content === 0) end();
  };
  return {
    write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const left = bytes.length - at;
        if (content > 0 && file !== null) {
          const written = writeSync(file, bytes, at, Math.min(left, content));
          at += written;
          content -= written;
          if (content === 0) end();
        } else if (padding > 0) {
          const skipped = Math.min(left, padding);
          at += skipped;
          padding -= skipped;
        } else {
          const taken = Math.min(left, BLOCK - filled);
          header.set(bytes.subarray(at, at + taken), filled);
          at += taken;
          filled = (filled + taken) % BLOCK;
          if (filled === 0) begin();
        }
      }
    },
    end,
  };
}

type Entry = { readonly name: string; readonly isDirectory: boolean; readonly size: number };

/** POSIX.1-1988 ustar, without long names and links. Returns null for an empty block: the archive ends with them. */
function readHeader(block: Buffer): Entry | null {
  const text = (from: number, to: number) => block.toString('latin1', from, to).replace(/\0.*$/s, '');
  const name = text(0, 100);
  if (name === '') return null;
  return { name, isDirectory: text(156, 157) === '5', size: Number.parseInt(text(124, 136), 8) };
}
