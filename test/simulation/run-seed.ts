// One seed: a world, its run, and what is wrong with its history.
import { checkWorld } from './check.ts';
import type { Violation } from './witness.ts';
import { World } from './world.ts';

export type SeedResult = {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** Of the trace: the same in each run of the seed. */
  readonly digest: string;
  readonly steps: number;
  readonly events: number;
  /** How often each event or outcome was reached. */
  readonly counts: Readonly<Record<string, number>>;
  /** The trace in plain sentences; empty unless it was asked for. */
  readonly lines: readonly string[];
};

export async function runSeed(
  seed: number,
  { trace = false }: { readonly trace?: boolean } = {},
): Promise<SeedResult> {
  const world = new World(seed, trace);
  const { witness } = world;
  try {
    await world.run();
    for (const left of await world.stop()) witness.violated('no_promise_pending', left);
    await checkWorld(world);
    if (witness.violations.length === 0 && world.isSnapshot) await world.restoreSnapshot();
    else if (witness.violations.length === 0 && world.restores) await world.restore();
  } catch (error) {
    witness.violated('simulator', error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return {
    seed,
    violations: witness.violations,
    digest: world.trace.digest(),
    steps: world.scheduler.steps,
    events: world.shared.log.events.length,
    counts: Object.fromEntries(world.trace.counts),
    lines: world.trace.lines,
  };
}
