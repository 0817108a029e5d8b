import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Replaces the content of a file, or creates it with mode 0600; durable when it returns. Throws what the system does. */
export function replaceFile(path: string, content: string): void {
  const beside = `${path}.new`;
  try {
    writeFileSync(beside, content, { mode: 0o600, flush: true });
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
