// The doctor on the disk of the embedded stores: what is free, and how long it lasts.
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { Config } from '#src/config.ts';
import { freeBytes, growthOf } from '../disk.ts';
import { type Checked, fine, problem, warning } from './finding.ts';
import { hasEmbeddedLog, withOpenLog } from './stores.ts';

const GIB = 2 ** 30;
/** Below the first the event log soon accepts nothing, below the others within days of a busy relay. */
const DISK = { problem: GIB / 10, warning: GIB, days: 14 };

/** Bytes a day of the event log, or why they are not known. */
type Rate = number | keyof typeof UNKNOWN;
const UNKNOWN = {
  noLog: ' yet',
  young: ' yet: the event log is less than a day old',
  unread: ': see the line event_log',
} as const;

export async function checkDisk(config: Config): Promise<Checked> {
  const { dataDir, databaseUrl, eventStoreUrl } = config;
  if (eventStoreUrl !== null)
    return fine(
      'events and rows are on other machines: how long the disks of their servers last is not seen here',
    );
  const { state, message } = judgeDisk(dataDir, freeBytes(dataDir), await rateOf(config));
  return {
    state,
    message: databaseUrl === null ? message : `${message}; the disk of Postgres is not seen here`,
  };
}

async function rateOf(config: Config): Promise<Rate> {
  if (!hasEmbeddedLog(config)) return 'noLog';
  try {
    return (await withOpenLog(config, (log) => growthOf(log, systemClock().now()))) ?? 'young';
  } catch {
    return 'unread';
  }
}

export function judgeDisk(dataDir: string, free: number, rate: Rate): Checked {
  const days = typeof rate === 'number' ? Math.floor(free / rate) : Number.POSITIVE_INFINITY;
  const text = `${(free / GIB).toFixed(1)} GiB are free for ${dataDir}; ${lasting(days, rate)}`;
  if (free < DISK.problem)
    return problem(`${text}: less than 0.1 GiB, free some before the event log is full`);
  if (free < DISK.warning) return warning(`${text}: less than 1 GiB, free some soon`);
  return days < DISK.days ? warning(`${text}: less than ${DISK.days} days, enlarge it`) : fine(text);
}

function lasting(days: number, rate: Rate): string {
  if (typeof rate !== 'number') return `how long the disk lasts is not known${UNKNOWN[rate]}`;
  const daily = (rate / 1e6).toFixed(rate < 1e7 ? 1 : 0);
  const said = days > 3650 ? 'more than 10 years' : `${days} days`;
  return `at the rate of the event log in the last 7 days, ${daily} MB a day, the disk lasts ${said}, without the backups on it`;
}
