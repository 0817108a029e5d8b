// What the groups of routes are wired from.
import type { Projector } from '#projections/projector.ts';
import type { ReadModels } from '#projections/read-models.ts';
import type { Config } from '#src/config.ts';
import type { Places } from '#src/domain/places.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import type { HttpSettings } from '#src/http/deps.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { Scrub } from '#src/usecases/audit/scrub-log.ts';
import type { Slots } from '#src/usecases/execution/process-limits.ts';
import type { Recovery } from '#src/usecases/execution/recover-jobs.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import type { RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import type { Witnesses } from '#src/usecases/witnesses/witnesses.ts';
import type { Keys } from './keys.ts';
import type { Stores } from './stores.ts';
import type { Targets } from './targets.ts';
import type { Telemetry } from './telemetry.ts';

export type AppParts = {
  readonly config: Config;
  readonly baseUrl: string;
  readonly owner: string;
  readonly journal: JournalDeps & { readonly ending: AbortSignal };
  readonly stopping: AbortSignal;
  readonly keys: Keys;
  readonly stores: Stores;
  readonly models: ReadModels;
  readonly projector: Projector;
  readonly places: Places;
  readonly slots: Slots;
  readonly recovery: Pick<Recovery, 'foundRunning' | 'unclosable'>;
  readonly receiptLog: () => ReceiptLog | null;
  readonly checkpoints: Pick<Checkpoints, 'latest' | 'standing'>;
  /** null: the transparency log has none. */
  readonly witnesses: Pick<Witnesses, 'latest' | 'status'> | null;
  readonly recordIsWhole: RecordDeps['recordIsWhole'];
  readonly telemetry: Telemetry;
  readonly scrub: Pick<Scrub, 'lastPass'>;
  readonly standstillMs: number | undefined;
};

/** What several groups of routes work with. */
export type Shared = {
  readonly settings: HttpSettings;
  readonly targets: Targets;
  readonly quota: Quota;
};
