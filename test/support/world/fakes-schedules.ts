// Schedules as a test drives them: processes over one log, one vault and one payment protocol, and a clock for each.
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { type NewText, sealedVault } from '#src/adapters/vault/sealed.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Vault } from '#src/ports/vault.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { Conditions } from '#src/usecases/process/condition.ts';
import { load, SCHEDULE } from '#src/usecases/process/stream.ts';
import { type Bought, type Buyer, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { type RunnerDeps, ScheduleRunner } from '#src/usecases/schedules/runner.ts';
import { SharedClock } from '#src/usecases/schedules/shared-clock.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { at, T0 } from '#test/support/given/given-events.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { letPass } from './fakes.ts';
import { type Shared, shared, type World, world } from './fakes-world.ts';
import { MemoryTexts } from './memory-vault.ts';

export type MemoryVault = Vault & { readonly keys: Map<string, NewText>; clock: number | null };

export function memoryVault(): MemoryVault {
  const texts = new MemoryTexts();
  const store = { keys: texts.keys, clock: null as number | null };
  const ports = texts.store(
    async (_, effect) => effect(),
    () => store.clock,
  );
  return Object.assign(
    store,
    sealedVault({ ...ports, deleteEnded: async () => undefined }, hashWith('vault')),
  );
}

export type ScheduleCommon = Shared & {
  readonly vault: MemoryVault;
  /** By nonce. */
  readonly presented: Map<string, PresentedPayment>;
};

export const commonSchedules = (): ScheduleCommon => ({
  ...shared(),
  vault: memoryVault(),
  presented: new Map(),
});

export type ScheduleWorld = ReturnType<typeof scheduleWorld>;

/** One process. The runner looks at all schedules of the log at each pass. */
export function scheduleWorld(
  common: ScheduleCommon = commonSchedules(),
  changes: Partial<ExecuteDeps> = {},
) {
  return schedulesOf(world(common, changes), common);
}

/** The schedules of a process. */
export function schedulesOf(it: World, common: ScheduleCommon) {
  const stopping = new AbortController();
  const conditions = new Conditions(it.deps.clock, it.deps.logger);
  const logger = { ...it.deps.logger, condition: conditions.set.bind(conditions) };
  const deps: RunnerDeps = {
    ...it.deps,
    logger,
    vault: common.vault,
    calendar: temporalCalendar(),
    horizonMs: 30 * 86_400_000,
    stopping: stopping.signal,
    sharedClock: new SharedClock({ vault: common.vault, clock: it.deps.clock, logger }),
    runsAtOnce: 128,
    authorizations: {
      write: ({ nonce }) => JSON.stringify({ nonce }),
      async open(text) {
        const { nonce } = JSON.parse(text);
        const known = common.presented.get(nonce);
        if (known === undefined) throw new Error('no such authorization');
        return known;
      },
    },
    candidates: async () => [
      ...new Set(
        common.log.events
          .filter(({ stream }) => stream.startsWith('schedule-'))
          .map(({ stream }) => stream.slice('schedule-'.length)),
      ),
    ],
  };
  const runner = new ScheduleRunner(deps);
  return {
    ...it,
    common,
    conditions,
    deps,
    runner,
    /** One look, and the runs that it begins, with the time that they take. */
    async pass() {
      await runner.pass();
      await letPass(it.clock, runner.settled());
    },
  };
}

export const every10 = (changes: Partial<ScheduleRequest> = {}): ScheduleRequest => ({
  webhook: { url: 'https://target.example/hook', body: { text: 'hello' } },
  schedule: { type: 'interval', everyMinutes: 10, startAt: at(60_000) },
  catchUpSeconds: 300,
  ...changes,
});

/** Of run `n`, counted from 1, of `every10`. */
export const dueOf = (n: number) => T0 + 60_000 + (n - 1) * 600_000;

/** Another authorization for each digit, which lives until `untilMs`. */
export function buyerWith(
  it: Pick<ScheduleWorld, 'common'>,
  digit: string,
  untilMs = T0 + 86_400_000,
): Buyer {
  const nonce = `0x${digit.repeat(64)}`;
  const presented = otherPayment(digit, {
    nonce,
    validBefore: String(untilMs / 1000),
    payloadHash: digit.repeat(64),
  });
  it.common.presented.set(nonce, presented);
  return {
    presented,
    payer: presented.payer,
    client: 'c',
    token: null,
  };
}

/** One process where calls are free. */
export function freeWorld(common: ScheduleCommon = commonSchedules()): ScheduleWorld {
  const it = scheduleWorld(common);
  Object.assign(it.deps, { payments: { ...it.deps.payments, mode: 'demo' } });
  return it;
}

export const FREE: Buyer = { presented: null, payer: 'demo', client: 'c', token: null };

export async function create(
  it: ScheduleWorld,
  buyer: Buyer = buyerWith(it, '1'),
  request: ScheduleRequest = every10(),
): Promise<Bought> {
  const bought = await letPass(it.clock, createSchedule(it.deps, request, buyer));
  if (isRefused(bought))
    throw new Error(`${bought.refused}: ${bought.message} ${JSON.stringify(bought.details)}`);
  return bought;
}

export async function fundNext(it: ScheduleWorld, scheduleId: string, buyer: Buyer): Promise<Bought> {
  const bought = await letPass(it.clock, fundRun(it.deps, scheduleId, buyer));
  if (isRefused(bought)) throw new Error(`${bought.refused}: ${bought.message}`);
  return bought;
}

export const idOf = ({ schedule }: Bought): string => schedule.defined.scheduleId;

export async function scheduleOf(it: Pick<ScheduleWorld, 'log'>, id: string) {
  const { state } = await load(it, SCHEDULE, id);
  if (state.status === 'absent') throw new Error('there is no such schedule');
  return state;
}

/** Each skipped run with its reason, in the log's order. */
export const skips = (it: Pick<ScheduleWorld, 'log'>): readonly string[] =>
  it.log.events.filter(({ type }) => type === 'RunSkipped').map(({ data }) => `${data.run} ${data.reason}`);
