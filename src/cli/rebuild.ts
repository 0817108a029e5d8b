// relay rebuild: builds the read models of this release from the event log while services read theirs; or compares, or
// drops generations that no process uses.
import type { Command } from 'commander';
import { CannotRebuild, type Healing, type RebuildResult } from '#projections/rebuild.ts';
import { type Config, readConfig } from '../config.ts';
import { EventLogUnavailable } from '../ports/event-log.ts';
import { ReadStoreInUse } from '../ports/read-store.ts';
import { CannotRun, EXIT, exiting, oneLine, rootCause } from './exit.ts';
import { shareOf } from './operator.ts';
import { mark, numbered, plain, print, printer, printJson, showProgress } from './terminal.ts';

type Options = { readonly check?: true; readonly prune?: true; readonly json?: true };

const HELP = `
Run it before a release is deployed: the release then starts with complete read models. Reads continue meanwhile.
Embedded read models are rebuilt while no service has them. A rebuild that was interrupted is continued when it is run again.
--check changes nothing and exits with 1 if rows differ, and with 3 if those that took the place of lost rows are equal so
far, and lack events.`;

export function addRebuild(program: Command): void {
  program
    .command('rebuild')
    .description('Build the read models of this release from the event log.')
    .option('--check', 'compare the current rows with rebuilt ones instead')
    .option(
      '--prune',
      'drop read models that no process has used for 10 minutes, or that are of a lost history or incomplete, instead',
    )
    .option('--json', 'print one JSON object; progress goes to standard error')
    .addHelpText('after', HELP)
    .action(exiting(rebuild));
}

async function rebuild(options: Options): Promise<unknown> {
  if (options.check && options.prune) throw new CannotRun('--check and --prune cannot be combined');
  if (options.prune) return prune(readConfig(), options);
  const result = await run(readConfig(), options);
  if (options.json) printJson(result);
  else print(...linesOf(result));
  if (result.outcome === 'equal' && result.healing !== null) process.exitCode = EXIT.open;
  return result.outcome !== 'different';
}

async function prune(config: Config, { json }: Options): Promise<void> {
  const { pruneReadModels } = await import('#src/app/rebuild.ts');
  const dropped = await pruneReadModels(config).catch((error: unknown) => {
    throw cannotRun(error, config);
  });
  if (json) printJson({ dropped });
  else if (dropped.length > 0) print(`${mark(true)} Dropped: ${dropped.join(', ')}.`);
  else
    print(
      `${mark(true)} Nothing to drop: no read models of another release or log are unused for 10 minutes.`,
    );
}

async function run(config: Config, options: Options): Promise<RebuildResult> {
  const { rebuildReadModels } = await import('#src/app/rebuild.ts');
  const progress = showProgress(options.check ? 'comparing' : 'rebuilding', printer(options.json === true));
  try {
    return await rebuildReadModels(config, {
      check: options.check === true,
      onProgress: (events, position, head) =>
        progress.show({ events, eventsHere: events, share: shareOf(position, head) }),
    });
  } catch (error) {
    throw cannotRun(error, config);
  } finally {
    progress.end();
  }
}

/** Whatever else was thrown describes itself. */
function cannotRun(cause: unknown, { databaseUrl }: Config): unknown {
  if (cause instanceof CannotRebuild) return new CannotRun(cause.message, { cause });
  if (cause instanceof ReadStoreInUse) {
    const holder = cause.pid === null ? 'another process' : `process ${cause.pid}`;
    return new CannotRun(
      `the embedded read models are in use by ${holder}: stop it first (it rebuilds them automatically if needed)`,
      { cause },
    );
  }
  if (databaseUrl === null || cause instanceof EventLogUnavailable || !isOfDatabase(cause)) return cause;
  return new CannotRun(`the database could not be used: ${oneLine(rootCause(cause))}`, { cause });
}

/** postgres.js and drizzle: the driver's own words, without whole statements. */
const isOfDatabase = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'PostgresError' || error.cause !== undefined || 'code' in error);

function linesOf({ outcome, events, rows, different, healing }: RebuildResult): readonly string[] {
  const counted = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const tables = Object.keys(rows).length;
  const scope = `${numbered(counted, 'row')} in ${numbered(tables, 'table')} from ${numbered(events, 'event')}`;
  if (outcome === 'built') return [`${mark(true)} Rebuilt: ${scope}.`];
  if (outcome === 'equal' && healing === null) return [`${mark(true)} Equal: ${scope}.`];
  const lines = different.flatMap(({ table, differing, first }) => [
    `${mark(false)} ${table}: ${differing === 1 ? '1 row differs' : `${differing} rows differ`} from the event log`,
    ...first.map(({ key, kind, columns }) => `  ${plain(key)}: ${WORDS[kind]}${columns.join(', ')}`),
    ...(differing > first.length ? [`  and ${differing - first.length} more`] : []),
  ]);
  if (outcome === 'equal') lines.push(`Equal so far: ${scope}.`);
  return [...lines, healing === null ? 'Run relay rebuild to correct them.' : HEALING[healing]];
}

const HEALING: Readonly<Record<Healing, string>> = {
  deleted: 'Rows were deleted. A running service builds all rows again; without one, run relay rebuild.',
  behind:
    'Rows were lost, and are being built again: these lack events. Run it again when readModels is ok in /health.',
};

const WORDS = {
  missing: 'is missing',
  surplus: 'should not exist',
  differs: 'differs in ',
} as const;

/** relay migrate: the tables that belong to no generation of read models. */
export function addMigrate(program: Command): void {
  program
    .command('migrate')
    .description('Apply the migrations to the database of DATABASE_URL.')
    .action(migrate);
}

async function migrate(): Promise<void> {
  const { databaseUrl } = readConfig();
  if (databaseUrl === null) {
    throw new CannotRun('DATABASE_URL is not set; embedded read models are created when the service starts');
  }
  const { migrateDatabase } = await import('#src/app/rebuild.ts');
  await migrateDatabase(databaseUrl).catch((cause: unknown) => {
    throw new CannotRun(`the database could not be migrated: ${oneLine(rootCause(cause))}`, { cause });
  });
  print(
    'The database is migrated. `relay rebuild` builds the read models of this release before it is deployed.',
  );
}
