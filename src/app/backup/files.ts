// The files of a backup, and what they are checked by.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isManifest, type Manifest } from '#src/domain/backup/manifest.ts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { findText, flush } from '#src/lib/files/durable.ts';
import { OperatorError } from '#src/lib/operator-error.ts';

/** Paths in a backup. The keys are apart from the record, so that each can be stored elsewhere. */
export const BACKUP = {
  manifest: 'backup.json',
  log: 'log/events.db',
  note: 'log/checkpoint.note',
  memory: 'log/event-log.json',
  keys: 'keys/keys.json',
} as const;

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk);
  return hash.digest('hex');
}

/** Syncs every file and folder in `folder`, and itself. */
export function flushTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) flushTree(path);
    else flush(path);
  }
  flush(folder);
}

/** The manifest, after every file was compared with it. Throws `OperatorError`. */
export async function readBackup(folder: string): Promise<Manifest> {
  const text = findText(join(folder, BACKUP.manifest));
  const manifest = text === null ? null : parsedJson(text);
  if (!isManifest(manifest))
    throw new OperatorError(`${folder} is no backup: it has no valid ${BACKUP.manifest}`);
  for (const required of [BACKUP.log, BACKUP.keys])
    if (!(required in manifest.files))
      throw new OperatorError(`${folder} is no backup: it names no ${required}`);
  for (const [name, { sha256, bytes }] of Object.entries(manifest.files)) {
    const path = join(folder, name);
    if (!(Object.values(BACKUP) as readonly string[]).includes(name) || !existsSync(path))
      throw new OperatorError(`${path} is missing, or no file of a backup: put it back beside the others`);
    if (statSync(path).size !== bytes || (await sha256Of(path)) !== sha256)
      throw new OperatorError(`${path} is not as it was written: use another backup`);
  }
  return manifest;
}
