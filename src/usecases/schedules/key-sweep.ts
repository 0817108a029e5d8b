// Deletes the keys that a crash has left behind: of runs that have ended, of purchases that were not completed, and
// of cancellations.
import type { DefinedSchedule } from '#src/domain/schedule/state.ts';
import { JOB, load, SCHEDULE, type View } from '#src/usecases/process/stream.ts';
import { definedView, type EndDeps, endRun, forgetRequest } from './end-run.ts';

const SWEEP_MS = 600_000;

export class KeySweep {
  readonly #deps: EndDeps;
  /** Keys that no run had at the last look: a purchase may be under way, whose run is recorded after its key. */
  #unused: ReadonlySet<string> = new Set();

  /** Monotonic ms. */
  #sweptAt = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(deps: EndDeps) {
    this.#deps = deps;
  }

  /** Begins a look at the schedules that have a key, at most every 10 minutes: longer than a purchase takes. */
  sweepIfDue(failed: (cause: unknown) => unknown): void {
    const now = this.#deps.clock.monotonic();
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    this.#sweeping = this.#sweep().catch((cause: unknown) => void failed(cause));
  }

  settled(): Promise<void> {
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { log, vault } = this.#deps;
    const names = new Set(await vault.names());
    const used = new Set<string>();
    for (const name of names) {
      const view = name.startsWith('sch_') ? definedView(await load({ log }, SCHEDULE, name)) : null;
      if (view === null) continue;
      used.add(name);
      for (const { jobId } of view.state.tickets) used.add(jobId);
      await this.#sweepSchedule(view, names);
    }
    const unused = [...names].filter((name) => !used.has(name));
    await vault.remove(unused.filter((name) => this.#unused.has(name)));
    this.#unused = new Set(unused);
  }

  async #sweepSchedule(view: View<DefinedSchedule>, names: ReadonlySet<string>): Promise<void> {
    let now: View<DefinedSchedule> | null = view;
    for (const ticket of view.state.tickets) {
      if (now === null || !names.has(ticket.jobId)) continue;
      if (ticket.status === 'started') {
        const job = await load(this.#deps, JOB, ticket.jobId);
        if (job.state.status === 'completed') await this.#deps.vault.remove([ticket.jobId]);
      } else if (view.state.status === 'cancelled') now = await endRun(this.#deps, now, ticket, 'cancelled');
    }
    if (now !== null) await forgetRequest(this.#deps, now);
  }
}
