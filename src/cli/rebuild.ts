// relay rebuild: the read models told anew from the event log while the service goes on reading the old ones; or, with
// --check, compared with what the log tells.
import type { Command } from 'commander';
import type { RebuildResult } from '#projections/rebuild.ts';
import { CannotRebuild, RebuildFailed } from '#projections/rebuild-lock.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import { type Config, readConfig } from '../config.ts';
import { EventLogUnavailable } from '../ports/event-log.ts';
import { ReadStoreInUse } from '../ports/read-store.ts';
import { CannotRun, type End, EXIT, FoundWrong } from './exit.ts';
import { rootOf } from './migrate.ts';
import { mark, plain, print, printer, printJson, showProgress } from './terminal.ts';

type Options = { readonly check?: true; readonly otherLog?: true; readonly json?: true };

const NAMES = READ_MODELS.map(({ name }) => name);

const HELP = `
Models: ${NAMES.join(', ')}; all of them unless some are named.
Beside a service on DATABASE_URL reads go on and never fail; embedded read models are rebuilt while no service has them.
A rebuild that was interrupted goes on where it was. --check changes nothing and exits 1 where rows differ.`;

export function addRebuild(program: Command, end: End): void {
  program
    .command('rebuild')
    .description('tell the read models anew from the event log, while the service reads on')
    .argument('[models...]', 'which ones')
    .option('--check', 'compare with what the log tells instead of replacing')
    .option('--other-log', 'replace rows that were told from another event log')
    .option('--json', 'for machines: one object; progress goes to standard error')
    .addHelpText('after', HELP)
    .action(async (names: readonly string[], options: Options) => {
      const models = modelsOf(names);
      const result = await run(readConfig(), models, options);
      if (options.json) printJson(result);
      else print(...linesOf(result));
      end(result.outcome === 'different' ? EXIT.foundWrong : EXIT.good);
    });
}

function modelsOf(names: readonly string[]): readonly ReadModel[] {
  const unknown = names.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) {
    throw new CannotRun(`there is no read model ${plain(unknown)}; there are ${NAMES.join(', ')}`);
  }
  return names.length === 0 ? READ_MODELS : READ_MODELS.filter(({ name }) => names.includes(name));
}

async function run(config: Config, models: readonly ReadModel[], options: Options): Promise<RebuildResult> {
  const { rebuildReadModels } = await import('#src/app/service.ts');
  const progress = showProgress(options.check ? 'comparing' : 'rebuilding', printer(options.json === true));
  try {
    return await rebuildReadModels(config, {
      models,
      check: options.check === true,
      otherLog: options.otherLog === true,
      onProgress: progress.show,
    });
  } catch (error) {
    throw told(error, config);
  } finally {
    progress.end();
  }
}

/** What else was thrown says for itself why it could not run. */
function told(cause: unknown, { databaseUrl }: Config): unknown {
  if (cause instanceof CannotRebuild) return new CannotRun(cause.message, { cause });
  if (cause instanceof RebuildFailed) return new FoundWrong(cause.message, { cause });
  if (cause instanceof ReadStoreInUse) {
    const holder = cause.pid === null ? 'another process' : `process ${cause.pid}`;
    return new CannotRun(
      `the embedded read models are in use by ${holder}: stop it first (it replays them by itself where that is needed)`,
      { cause },
    );
  }
  if (databaseUrl === null || cause instanceof EventLogUnavailable || !isOfDatabase(cause)) return cause;
  return new CannotRun(`the database could not be used: ${rootOf(cause)}`, { cause });
}

/** postgres.js and drizzle: the driver's own words, without whole statements. */
const isOfDatabase = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'PostgresError' || error.cause !== undefined || 'code' in error);

function linesOf({ outcome, events, rows, different, behindHorizon }: RebuildResult): readonly string[] {
  const counted = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const scope = `${counted} rows of ${Object.keys(rows).length} tables, told by ${events} events`;
  if (outcome === 'swapped') return [`${mark(true)} Rebuilt: ${scope}.`];
  const late = behindHorizon === null ? [] : [lateLine(behindHorizon)];
  if (outcome === 'equal') return [`${mark(true)} Equal: ${scope}.`, ...late];
  const lines = different.flatMap(({ table, differing, first }) => [
    `${mark(false)} ${table}: ${differing === 1 ? '1 row differs' : `${differing} rows differ`} from what the log tells`,
    ...first.map(({ key, kind, columns }) => `  ${plain(key)}: ${WORDS[kind]}${columns.join(', ')}`),
    ...(differing > first.length ? [`  and ${differing - first.length} more`] : []),
  ]);
  return [...lines, 'Run relay rebuild to mend them.', ...late];
}

/** For an operator whose purge ran under a wrong clock: the horizon never goes back. */
function lateLine({ rows, jobsBefore, receiptsBefore }: NonNullable<RebuildResult['behindHorizon']>): string {
  const horizon = [
    jobsBefore && `jobs before ${jobsBefore}`,
    receiptsBefore && `receipts before ${receiptsBefore}`,
  ];
  const counted = rows === 1 ? '1 live row is' : `${rows} live rows are`;
  return `${counted} behind the horizon of the purge (${horizon.filter(Boolean).join(', ')}): the next purge or rebuild takes them away.`;
}

const WORDS = {
  missing: 'is missing',
  surplus: 'should not be there',
  differs: 'differs in ',
} as const;
