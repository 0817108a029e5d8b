import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** A new folder, removed after the file's tests. Call it at the top of the file. */
export function testFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `relay-${name}-`));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
