// What the embedded stores take on the disk of DATA_DIR, and how fast their event log grows.
import { existsSync, statfsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '#src/config.ts';
import { bytesPerDay, GROWTH_WINDOW_MS } from '#src/domain/monitoring/growth.ts';
import { sizeOf } from '#src/lib/files/durable.ts';
import { systemCode } from '#src/lib/system-error.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import type { DiskUse } from '#src/ports/telemetry.ts';
import { LOG_FILES, READ_MODELS_FOLDER } from './stores.ts';

/** Of the nearest folder that exists. */
export function freeBytes(dataDir: string): number {
  let folder = dataDir;
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Of the embedded event log; null: it is not known yet, or the events are those of a server. Throws `EventLogUnavailable`. */
export async function growthOf(log: Pick<EventScan, 'storedEvents'>, nowMs: number): Promise<number | null> {
  const stored = (await log.storedEvents?.(nowMs - GROWTH_WINDOW_MS)) ?? null;
  return stored && bytesPerDay(stored, nowMs);
}

/** Beside a log on this machine. Throws what the system does, and `EventLogUnavailable`. */
export async function diskUse(
  { dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>,
  log: Pick<EventScan, 'storedEvents'>,
  nowMs: number,
): Promise<DiskUse> {
  return {
    freeBytes: freeBytes(dataDir),
    logBytes: LOG_FILES.reduce((sum, name) => sum + (sizeOf(join(dataDir, name)) ?? 0), 0),
    readModelsBytes: databaseUrl === null ? await bytesIn(join(dataDir, READ_MODELS_FOLDER)) : null,
    growthBytesPerDay: await growthOf(log, nowMs),
  };
}

/** Of all files below; a file that is removed meanwhile counts nothing. */
async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  let sum = 0;
  for (const entry of entries) {
    const path = join(folder, entry.name);
    sum += entry.isDirectory() ? await bytesIn(path) : (sizeOf(path) ?? 0);
  }
  return sum;
}
