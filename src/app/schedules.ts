// Paid schedules over the execution that is wired: the vault, the runner, and what their routes are given. Loaded only where
// they are on.
import { join } from 'node:path';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { refused } from '#src/domain/refusal.ts';
import { upcomingRuns } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import type { SchedulesDeps } from '#src/http/routes/schedules.ts';
import { iso } from '#src/lib/iso.ts';
import { steadyClock } from '#src/lib/steady-clock.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { type Vault, VaultUnavailable } from '#src/ports/vault.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { type Buyer, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { quoteRun, quoteSchedule, timeOf } from '#src/usecases/schedules/quote.ts';
import { ScheduleRunner } from '#src/usecases/schedules/runner.ts';
import { SharedClock } from '#src/usecases/schedules/shared-clock.ts';
import type { AppParts } from './app-parts.ts';

const DAY_MS = 86_400_000;
/** Schedules looked at in one second; those with the earliest runs of the others follow. */
const CANDIDATES_MAX = 1000;
/** Of each kind, between two looks at all of them. */
const NEXT_MAX = 8;
const UPCOMING_MAX = 3;

const NOT_PAID = {
  write: () => '',
  open: async () => refused('payment_required', 'Calls are free now.'),
};

/** `ended`: resolves when `stopping` has aborted and the runs in progress have ended. */
export async function wireSchedules(
  parts: AppParts,
  {
    execution,
    resolverOf,
  }: { readonly execution: ExecuteDeps; readonly resolverOf: (client: string) => Resolver },
  protocol: PaymentProtocol | null,
  horizonDays: number,
): Promise<{ readonly routes: SchedulesDeps; readonly ended: Promise<void> }> {
  const { models, projector, stopping } = parts;
  const calendar = temporalCalendar();
  const vault = await openVault(parts);
  const deps = {
    ...execution,
    vault,
    calendar,
    horizonMs: horizonDays * DAY_MS,
    stopping,
    candidates: (untilMs: number, few: boolean) =>
      models.schedule.due(iso(untilMs), few ? NEXT_MAX : CANDIDATES_MAX),
    sharedClock: new SharedClock({ vault, ...parts.journal }),
    authorizations: protocol === null ? NOT_PAID : { write: protocol.write, open: protocol.reopen },
    runsAtOnce: parts.places.runs,
  };
  const asClient = ({ client }: Buyer) => ({ ...deps, resolver: resolverOf(client) });
  const runner = new ScheduleRunner(deps);
  return {
    ended: runner.run().finally(() => vault.close()),
    routes: {
      progress: projector,
      quoteSchedule: async (request) => quoteSchedule(deps, request),
      quoteRun: (row) => quoteRun(deps, row),
      create: (request, buyer) => createSchedule(asClient(buyer), request, buyer),
      fund: (scheduleId, buyer) => fundRun(asClient(buyer), scheduleId, buyer),
      cancel: (scheduleId, token) => cancelSchedule(deps, scheduleId, token),
      upcoming: (schedule) => upcomingRuns(schedule, timeOf(deps), UPCOMING_MAX),
      find: models.schedule.find,
    },
  };
}

async function openVault({
  config,
  stores: { readStore },
  journal,
  keys: { keyedHash },
}: AppParts): Promise<Vault> {
  if (readStore.disposable) {
    const { sqliteVault, vaultRemedy } = await import('#src/adapters/vault/sqlite.ts');
    const file = join(config.dataDir, 'vault.db');
    try {
      return sqliteVault({ file, keyedHash, now: steadyClock(journal.clock, RUN_TIMES.clockToleranceMs) });
    } catch (cause) {
      const hint = vaultRemedy(file);
      journal.logger.condition('schedules', 'vault_damaged', { hint }, cause);
      return damagedVault(cause);
    }
  }
  const { postgresVault } = await import('#src/adapters/vault/postgres.ts');
  return postgresVault({ open: () => readStore.shared(), keyedHash });
}

/** Calls are executed without it. */
function damagedVault(cause: unknown): Vault {
  const unavailable = () => Promise.reject(new VaultUnavailable(cause, { isDamaged: true }));
  return {
    put: unavailable,
    held: unavailable,
    take: unavailable,
    remove: unavailable,
    names: unavailable,
    now: unavailable,
    close: async () => undefined,
  };
}
