// The health of each part, and the figures for operators.
import type { Projector } from '#projections/projector.ts';
import { damagedPlace, shortPosition } from '#src/domain/damage.ts';
import { newerText } from '#src/domain/event-versions.ts';
import type { CodeOf } from '#src/domain/monitoring/conditions.ts';
import {
  HEALTH_PARTS,
  healthReport,
  type ProjectionBarrier,
  type ReadModelHealth,
  type Wrong,
  wrongParts,
} from '#src/domain/monitoring/health.ts';
import type { AppDeps } from '#src/http/app.ts';
import { sharedAnswer } from '#src/lib/shared-answer.ts';
import { EventDamaged, EventOfNewerRelease } from '#src/ports/event-log.ts';
import type { Reconciler } from '#src/usecases/reconciliation/reconciler.ts';
import type { AppParts, Shared } from './app-parts.ts';
import { diskUse } from './disk.ts';
import type { Paying } from './execution.ts';

/** ms for which an answer is kept: who pays nothing must not have each part asked without end. */
const KEPT_MS = 250;
/** The files of the read models are many, and a day is long. */
const DISK_KEPT_MS = 60_000;

export function wireHealth(
  {
    config,
    journal: { log, clock },
    keys,
    stores,
    slots,
    projector,
    recovery,
    checkpoints,
    telemetry: { conditions, figures },
    scrub,
    witnesses,
  }: AppParts,
  { settings }: Pick<Shared, 'settings'>,
  { payments, chain }: Paying,
  reconciler: Reconciler | null,
): AppDeps['health'] {
  const logHealth = sharedAnswer(clock, KEPT_MS, () => log.health());
  const health = sharedAnswer(clock, KEPT_MS, report);
  const disk = sharedAnswer(clock, DISK_KEPT_MS, async () =>
    // Of no other figure may it take the place.
    config.eventStoreUrl === null ? diskUse(config, stores.log, clock.now()).catch(() => null) : null,
  );

  /** A database that answers but provides no rows (no such privilege, no such table) is not ok. */
  async function readModelHealth(): Promise<ReadModelHealth> {
    const store = await stores.readStore.health();
    if (!store.ok) return { ...store, problem: 'unavailable' };
    if (!projector.readable()) return { ok: false, problem: 'unavailable' };
    return projector.state === 'rebuilding' ? { ok: false, problem: 'rebuilding' } : { ok: true };
  }
  async function chainHealth() {
    const node = (await chain?.scan.health()) ?? null;
    const difference = reconciler?.difference() ?? null;
    if (node?.ok && difference !== null)
      return { ok: false, problem: 'books_differ_from_chain', ...difference } as const;
    const since = reconciler?.standsStillSince() ?? null;
    return !node?.ok || since === null ? node : ({ ok: false, problem: 'not_compared', since } as const);
  }
  async function report() {
    const [eventLog, rows, facilitator, compared] = await Promise.all([
      logHealth(),
      readModelHealth(),
      payments.health(),
      chainHealth(),
    ]);
    const standing = checkpoints.standing();
    const facts = {
      eventLog,
      signingKey: keys.health(),
      checkpoint: standing && { problem: standing.problem, waitingMs: standing.ageMs },
      readModels: rows,
      projection: { ...projector.lag(), barrier: barrierOf(projector.stoppedAt()) },
      facilitator,
      chain: compared,
      schedules: config.schedules === null ? null : { wrong: schedulesNow() },
    };
    const wrong = wrongParts(facts);
    for (const part of HEALTH_PARTS) conditions.note(part, wrong[part]);
    return healthReport(facts);
  }
  /** As the worker of the runs has reported it. */
  function schedulesNow(): Wrong<'schedules'> | null {
    const found = conditions.of('schedules');
    return found && { code: found.code as CodeOf<'schedules'>, facts: found.facts };
  }
  async function exposition() {
    const [{ checks }, { damaged }, used] = await Promise.all([health(), logHealth(), disk()]);
    const newest = checkpoints.latest();
    const waitingMs = checkpoints.standing()?.ageMs ?? 0;
    return figures.exposition({
      conditions: conditions.list(),
      storage: stores.driver,
      checks,
      eventLog: { damagedEvents: damaged?.count ?? 0, scrubbedAt: scrub.lastPass() },
      disk: used,
      checkpoint: newest && { size: newest.size, signedAt: newest.signedAt, waitingMs },
      executionsInFlight: slots.inFlight(),
      unclosableJobs: recovery.unclosable(),
      lag: projector.lag(),
      payments: reconciler?.figures() ?? null,
      witnesses: witnesses?.status() ?? null,
    });
  }
  return {
    settings,
    health,
    wrong: () =>
      conditions
        .list()
        .flatMap(({ part, message }) => (HEALTH_PARTS.some((one) => one === part) ? [message] : [])),
    witnesses: () => witnesses?.status() ?? null,
    operators: { exposition },
  };
}

function barrierOf(barrier: ReturnType<Projector['stoppedAt']>): ProjectionBarrier | null {
  if (barrier === null) return null;
  if (barrier instanceof EventOfNewerRelease) {
    const { kind, position } = barrier;
    return { problem: 'newer_release', place: `${newerText(kind)} at position ${shortPosition(position)}` };
  }
  const place =
    barrier instanceof EventDamaged
      ? `the damaged event at ${damagedPlace(barrier.damage)}`
      : 'damage of the event log';
  return { problem: 'stopped', place };
}
