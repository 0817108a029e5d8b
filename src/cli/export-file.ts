// An export on disk. What is written is appended at a known length, so that a half line of a run that was killed, or the
// end of one that is gone on with, is overwritten; the end line comes when all before it is on the disk: a file that
// looks complete is complete.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { CannotRun, systemCode } from './exit.ts';

export type ExportFile = {
  /** Bytes that stood there when it was opened. */
  readonly size: number;
  chunks(): AsyncIterable<Uint8Array>;
  /** What is written next follows so many bytes of what stands there; the rest is cut off. */
  keep(bytes: number): void;
  write(text: string): void;
  /** On the disk when it returns. */
  flush(): void;
  close(): void;
};

const CHUNK_BYTES = 256 * 1024;

/** Made where it is missing, and then its owner's alone: it holds no secret, yet says who paid. Throws `CannotRun`. */
export function openExportFile(path: string): ExportFile {
  const descriptor = asFault(path, () => openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600));
  const found = fstatSync(descriptor);
  if (!found.isFile()) {
    closeSync(descriptor);
    throw new CannotRun(`${path} is no file: name one, or - for standard output`);
  }
  let length = found.size;
  return {
    size: found.size,
    async *chunks() {
      const buffer = new Uint8Array(CHUNK_BYTES);
      for (let at = 0; ; ) {
        const read = readSync(descriptor, buffer, 0, buffer.length, at);
        if (read === 0) return;
        yield buffer.subarray(0, read);
        at += read;
      }
    },
    keep(bytes) {
      asFault(path, () => ftruncateSync(descriptor, bytes));
      length = bytes;
    },
    write(text) {
      const bytes = Buffer.from(text);
      for (let done = 0; done < bytes.length; ) {
        const written = asFault(path, () => writeSync(descriptor, bytes, done, bytes.length - done, length));
        done += written;
        length += written;
      }
    },
    flush: () => asFault(path, () => fsyncSync(descriptor)),
    close: () => closeSync(descriptor),
  };
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'is in a folder that is not there',
  EISDIR: 'is a folder',
  EACCES: 'may not be written',
  ENOSPC: 'cannot be written on: the disk is full; run it again when it is not, and it goes on',
};

function asFault<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const code = systemCode(cause) ?? 'unknown';
    throw new CannotRun(`${path} ${PROBLEMS[code] ?? `cannot be written (${code})`}`, { cause });
  }
}
