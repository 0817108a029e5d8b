// An export on disk. What is written is appended at a known length, so that a half line of a run that was killed, or the
// end of one that is gone on with, is overwritten; the end line comes when all before it is on the disk, and no other
// process may write meanwhile: a file that looks complete is complete.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { lockExport } from '#src/app/export-lock.ts';
import { CannotRun, systemCode } from './exit.ts';

export type ExportFile = {
  /** Bytes that stood there when it was opened. */
  readonly size: number;
  chunks(): AsyncIterable<Uint8Array>;
  /** What is written next follows so many bytes of what stands there; the rest is cut off. */
  keep(bytes: number): void;
  write(text: string): void;
  /** The last line of all, and on the disk when it returns. */
  finish(line: string): void;
  close(): void;
};

const CHUNK_BYTES = 256 * 1024;

/**
 * Made where it is missing, and then its owner's alone: it holds no secret, yet says who paid. Nobody else can open it
 * until it is closed. Throws `CannotRun`, also when somebody has written into it all the same.
 */
export function openExportFile(path: string): ExportFile {
  const descriptor = asFault(path, () => openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600));
  try {
    if (!fstatSync(descriptor).isFile())
      throw new CannotRun(`${path} is no file: name one, or - for standard output`);
    const lock = lockOf(path);
    return exportFile(path, descriptor, () => {
      closeSync(descriptor);
      lock.release();
    });
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function lockOf(path: string) {
  const lock = asFault(path, () => lockExport(path), 'locked');
  if (lock === null)
    throw new CannotRun(`${path} is being written by another relay export: wait for its end`);
  return lock;
}

function exportFile(path: string, descriptor: number, close: () => void): ExportFile {
  const { size } = fstatSync(descriptor);
  /** As it was found, and then as it was written. */
  let length = size;

  /** A lock is kept only by those that ask for it. */
  function demandOurs(): void {
    const here = fstatSync(descriptor, { bigint: true });
    const there = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (here.size === BigInt(length) && there?.ino === here.ino && there.dev === here.dev) return;
    throw new CannotRun(
      `${path} was changed by somebody else meanwhile: it is not finished; name another file`,
    );
  }

  function write(text: string): void {
    const bytes = Buffer.from(text);
    demandOurs();
    for (let done = 0; done < bytes.length; ) {
      const written = asFault(path, () => writeSync(descriptor, bytes, done, bytes.length - done, length));
      done += written;
      length += written;
    }
  }
  const flush = () => asFault(path, () => fsyncSync(descriptor));

  return {
    size,
    chunks: () => chunksOf(descriptor),
    keep(bytes) {
      demandOurs();
      asFault(path, () => ftruncateSync(descriptor, bytes));
      length = bytes;
    },
    write,
    finish(line) {
      flush();
      const before = length;
      write(line);
      flush();
      try {
        demandOurs();
      } catch (error) {
        // Not longer than it is: what others have cut off stays cut off.
        if (fstatSync(descriptor).size > before) ftruncateSync(descriptor, before);
        throw error;
      }
    },
    close,
  };
}

async function* chunksOf(descriptor: number): AsyncGenerator<Uint8Array, void, undefined> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let at = 0; ; ) {
    const read = readSync(descriptor, buffer, 0, buffer.length, at);
    if (read === 0) return;
    yield buffer.subarray(0, read);
    at += read;
  }
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'is in a folder that is not there',
  EISDIR: 'is a folder',
  EACCES: 'may not be written',
  ENOSPC: 'cannot be written on: the disk is full; run it again when it is not, and it goes on',
};

function asFault<T>(path: string, work: () => T, verb = 'written'): T {
  try {
    return work();
  } catch (cause) {
    const code = systemCode(cause) ?? 'unknown';
    throw new CannotRun(`${path} ${PROBLEMS[code] ?? `cannot be ${verb} (${code})`}`, { cause });
  }
}
