// The doctor on the stores: event log, key file, read models.
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { readKeyFile } from '#src/adapters/signing/key-file.ts';
import { readVaultFile, vaultRemedy } from '#src/adapters/vault/sqlite.ts';
import type { Config } from '#src/config.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteBusy } from '#src/lib/sqlite-error.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import { listKeys } from '#src/usecases/signing-keys/change-keys.ts';
import { demandMatch, loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { eventLogPath, logHistory } from '../log-history.ts';
import { openOperatorLog, operatorLogger } from '../operator.ts';
import { demandWritable } from '../start-errors.ts';
import { LOG_FILES, NoEventStore } from '../stores.ts';
import { type Checked, fine, printedReason, problem, skipped, warning } from './finding.ts';
import { eventStoreSupport, postgresSupport, SUPPORT_TEXT } from './server-support.ts';

/** The log itself is read, and probed for a write without an event; events are written to a scratch log beside it. */
export async function checkEventLog(config: Config): Promise<Checked> {
  const { dataDir, eventStoreUrl } = config;
  if (eventStoreUrl !== null) return withOpenLog(config, answersOfServer);
  demandWritable(LOG_FILES.map((name) => join(dataDir, name)));
  if (!existsSync(dataDir)) {
    logHistory(config).beforeOpening(eventLogPath(config));
    return fine(`${dataDir} and the event log in it are created at the first start`);
  }
  const speed = await scratchSpeed(dataDir);
  if (!hasEmbeddedLog(config)) {
    logHistory(config).beforeOpening(eventLogPath(config));
    return fine(`a new one is created at the first start; ${speed}`);
  }
  return withOpenLog(config, async (log) => {
    const health = await log.health();
    if (!health.ok) return problem(`${eventLogPath(config)} accepts no events (${health.problem})`);
    const damaged = health.damaged === undefined ? '' : '; damaged events: see relay audit --integrity';
    const text = `${eventLogPath(config)} is read and written, up to position ${(await log.head()) ?? 0}; ${speed}`;
    return damaged === '' ? fine(text) : problem(text + damaged);
  });
}

export const hasEmbeddedLog = (config: Config) => existsSync(eventLogPath(config));

export async function withOpenLog<T>(config: Config, work: (log: ScannedLog) => Promise<T>): Promise<T> {
  const { log } = await openOperatorLog(config, operatorLogger('silent')).catch((error: unknown): never => {
    throw error instanceof NoEventStore ? new OperatorError(noServer(error.cause), { cause: error }) : error;
  });
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}

/** Of the driver's text its last code only: it may contain the connection string. */
function noServer(cause: unknown): string {
  const words = cause instanceof Error ? String(rootOf(cause)).match(/\b[A-Z][A-Z_]{5,}\b/g) : null;
  const why = words === null ? '' : ` (${words.at(-1)})`;
  return `the server of EVENTSTORE_URL does not answer, or refuses this user, password or CA${why}: compare EVENTSTORE_URL with its address, users and certificate`;
}

const rootOf = (error: Error): Error => (error.cause instanceof Error ? rootOf(error.cause) : error);

const SAMPLES = 9;

/** Appends to a new log in the folder, one after another, reads them back, and removes it. */
async function scratchSpeed(folder: string): Promise<string> {
  const file = join(folder, `doctor-${process.pid}.db`);
  try {
    const log = await sqliteEventLog({ file, writes: true });
    const times: number[] = [];
    for (let n = 0; n < SAMPLES; n++) {
      const since = performance.now();
      await log.append('doctor', n === 0 ? 'no_stream' : BigInt(n - 1), [scratchEvent()]);
      times.push(performance.now() - since);
    }
    const found = await log.readStream('doctor');
    await log.close();
    if (found.length !== SAMPLES) throw new OperatorError(`${folder} does not return what was written to it`);
    const median = times.sort((a, b) => a - b)[Math.floor(SAMPLES / 2)] ?? 0;
    return `a synced append takes ${median.toFixed(1)} ms`;
  } finally {
    for (const tail of ['', '-wal', '-shm', '-journal']) rmSync(file + tail, { force: true });
  }
}

const scratchEvent = () => ({ id: randomUUID(), type: 'Doctor', data: {}, metadata: {} });

/** No stream has this revision: the append is refused by the leader after its checks, and stores nothing. */
const NO_REVISION = 10n ** 15n;

async function answersOfServer(log: ScannedLog): Promise<Checked> {
  const head = await log.head();
  const stream = `doctor-${randomUUID()}`;
  const refused = await log.append(stream, NO_REVISION, [scratchEvent()]).then(
    () => null,
    (error: unknown) => error,
  );
  if (!(refused instanceof WrongExpectedVersion))
    return problem(`the server of EVENTSTORE_URL takes no append: ${printedReason(refused)}`);
  const text = `the server of EVENTSTORE_URL is read and takes appends, up to position ${head ?? 'none'}`;
  const version = (await log.serverVersion?.()) ?? null;
  if (version === null) return fine(`${text}; it does not state its version`);
  const support = eventStoreSupport(version, Date.now());
  const stated = `${text}; its version is ${version}, ${SUPPORT_TEXT[support]}`;
  return support === 'supported' ? fine(stated) : warning(stated);
}

export async function checkKeys(config: Config): Promise<Checked> {
  const { path, create } = config.keyFile;
  const isNew = config.eventStoreUrl === null && !hasEmbeddedLog(config);
  if (create && !existsSync(path) && isNew) return fine(`${path} is created at the first start`);
  const file = readKeyFile(path);
  if (isNew && file.eventLog !== null)
    return warning(`${path} is read; the event log that it belongs to is missing: see the line event_log`);
  if (isNew) return fine(`${path} is read; its keys are announced at the first start`);
  return withOpenLog(config, async (log) => {
    const ring = await loadKeyRing({ log });
    if (ring.logId === null) return fine(`${path} is read; its keys are announced at the first start`);
    demandMatch(ring, file);
    const keys = await listKeys({ log, clock: systemClock() }, file.keys);
    const signing = keys.filter(({ inFile, state }) => inFile === 'active' && state === 'active');
    const missing = (['receipt', 'checkpoint'] as const).filter(
      (purpose) => !signing.some((key) => key.purpose === purpose),
    );
    if (missing.includes('receipt')) return problem(`${path} has no receipt key that signs: relay keys list`);
    if (missing.length > 0)
      return warning(`${path} has no checkpoint key that signs: relay keys rotate --purpose checkpoint`);
    const future = signing.filter(({ notBefore }) => Date.parse(notBefore ?? '') > Date.now());
    if (future.length > 0)
      return problem(`a key is valid only from ${future[0]?.notBefore}: compare the clock of this machine`);
    return fine(`${path} matches the event log`);
  });
}

/** With a larger difference, times in receipts and rows contradict each other. */
const SKEW_MS = 5000;

export async function checkReadModels({ databaseUrl, dataDir }: Config): Promise<Checked> {
  if (databaseUrl === null)
    return fine(`embedded, in ${join(dataDir, 'read-models')}: rebuilt whenever they are not usable`);
  const { databaseFacts } = await import('#src/adapters/read-store/postgres-check.ts');
  const facts = await databaseFacts(databaseUrl);
  if ('failure' in facts)
    return problem(
      `the database of DATABASE_URL gives no usable answer (${facts.failure}): compare DATABASE_URL with its address, user, password and name`,
    );
  if (facts.isReadOnly)
    return problem('the database of DATABASE_URL is read-only (a standby, or set so): name the primary one');
  if (!facts.mayCreateSchemas)
    return problem(
      'the role of DATABASE_URL lacks CREATE on the database, since each release has a schema of its own: grant it',
    );
  if (!facts.isMigrated && !facts.mayCreateTables)
    return problem(
      'the role of DATABASE_URL lacks CREATE on schema public, for the tables that all releases share: grant it',
    );
  const skew = Math.round(facts.skewMs / 1000);
  if (Math.abs(facts.skewMs) > SKEW_MS)
    return warning(
      `the clock of the database differs by ${skew} s from the clock of this machine: synchronise both (NTP)`,
    );
  const support = postgresSupport(facts.version, Date.now());
  const text = `PostgreSQL ${facts.version}, ${SUPPORT_TEXT[support]}, answers by the service's own settings, and the role has the rights it needs; its clock agrees`;
  return support === 'supported' ? fine(text) : warning(text);
}

/** A transaction that is under way, or that the next start undoes: the file is as it is only then. */
const JOURNAL = '-journal';

export function checkVault({ schedules, databaseUrl, dataDir }: Config): Checked {
  if (schedules === null) return skipped('SCHEDULES is off');
  if (databaseUrl !== null) return fine('the vault is in the database: see the line read_models');
  const file = join(dataDir, 'vault.db');
  demandWritable([file]);
  if (!existsSync(file)) return fine(`${file} is created at the first start`);
  if (existsSync(file + JOURNAL)) return fine(`${file} is being written`);
  try {
    return fine(`${file} is read; it has ${readVaultFile(file).keys} keys`);
  } catch (error) {
    if (isSqliteBusy(error)) return fine(`${file} is being written`);
    return problem(`the vault cannot be read: no run of a schedule is sold or started. ${vaultRemedy(file)}`);
  }
}
