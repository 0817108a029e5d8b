// Gauges of the state now: of the process, of its parts, and of payments.
import { Gauge, type Registry } from 'prom-client';
import type { WitnessesStatus } from '#src/domain/monitoring/witnesses.ts';
import type { PaymentFigures, StateNow } from '#src/ports/telemetry.ts';

/** What this process is. */
export type BuildInfo = { readonly version: string; readonly runtime: string };

type Row = readonly [name: string, help: string, value: (now: StateNow) => number | null];

/** Unknown is no number: the series is left out. */
const STATE: readonly Row[] = [
  ['process_resident_memory_bytes', 'Memory that the process holds.', () => process.memoryUsage().rss],
  [
    'relay_executions_in_flight',
    'Executions that hold a slot of MAX_IN_FLIGHT.',
    ({ executionsInFlight }) => executionsInFlight,
  ],
  [
    'relay_jobs_unclosable',
    'Jobs of dead processes whose closing fails; the log has the cause.',
    ({ unclosableJobs }) => unclosableJobs,
  ],
  [
    'relay_event_log_damaged_events',
    'Stored events known to be unreadable as they were written; the log and /health name them.',
    ({ eventLog }) => eventLog.damagedEvents,
  ],
  [
    'relay_event_log_scrubbed_timestamp_seconds',
    'When all stored events were last read to find damage, Unix time; absent before.',
    ({ eventLog: { scrubbedAt } }) => scrubbedAt && scrubbedAt / 1000,
  ],
  // Of the embedded stores: absent where a server has them.
  ['relay_disk_free_bytes', 'Bytes free on the disk of DATA_DIR.', ({ disk }) => disk?.freeBytes ?? null],
  ['relay_event_log_bytes', 'Bytes of the files of the event log.', ({ disk }) => disk?.logBytes ?? null],
  [
    'relay_read_models_bytes',
    'Bytes of the files of the read models.',
    ({ disk }) => disk?.readModelsBytes ?? null,
  ],
  [
    'relay_event_log_growth_bytes_per_day',
    'Bytes a day by which the event log has grown in the last 7 days; absent in its first day.',
    ({ disk }) => disk?.growthBytesPerDay ?? null,
  ],
  [
    'relay_checkpoint_size',
    'Leaves that the newest checkpoint covers.',
    ({ checkpoint }) => checkpoint?.size ?? null,
  ],
  [
    'relay_checkpoint_timestamp_seconds',
    'When the newest checkpoint was signed, Unix time; none is signed while there is nothing new.',
    ({ checkpoint }) => (checkpoint?.signedAt ? Date.parse(checkpoint.signedAt) / 1000 : null),
  ],
  [
    'relay_checkpoint_wait_seconds',
    'How long the oldest leaf that no checkpoint covers has waited.',
    ({ checkpoint }) => checkpoint && checkpoint.waitingMs / 1000,
  ],
  // Of witnesses: absent where the log has none.
  [
    'relay_witness_lag_seconds',
    'How long a checkpoint has waited for a quorum of witnesses; 0: the newest one has it.',
    ({ witnesses }) => witnesses?.lagSeconds ?? null,
  ],
  [
    'relay_projection_lag_events',
    'Events that the read models have yet to show; absent while unknown.',
    ({ lag }) => lag.lagEvents,
  ],
  [
    'relay_projection_lag_seconds',
    'How long the oldest of them has waited, or how long it has not been known.',
    ({ lag }) => lag.lagMs / 1000,
  ],
  // Of payments: absent in demo mode.
  [
    'relay_payments_balanced',
    'Whether the sums of the books balance, also with the chain: 1 or 0.',
    ({ payments }) => payments && Number(payments.balanced),
  ],
  [
    'relay_chain_reconciled_block',
    'The last block that was compared with the books.',
    ({ payments }) => payments?.reconciled?.block ?? null,
  ],
  [
    'relay_chain_reconciled_timestamp_seconds',
    'Time of that block, Unix time; 0 before the first comparison.',
    ({ payments }) => payments && (payments.reconciled?.timeSeconds ?? 0),
  ],
];

export function stateGauges(registry: Registry, build: BuildInfo): (now: StateNow) => void {
  const registers = [registry];
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const start = gauge('process_start_time_seconds', 'Start of the process, Unix time.');
  start.set(Date.now() / 1000 - process.uptime());
  const info = gauge('relay_build_info', 'What runs here; always 1.', ['version', 'runtime', 'storage']);
  const parts = gauge(
    'relay_part_up',
    'Whether a part does what callers need of it, as in /health: 1 or 0.',
    ['part'],
  );
  const problems = gauge(
    'relay_part_problem',
    'What is wrong with a part, also one that /health does not list; always 1.',
    ['part', 'reason'],
  );
  const witnessUp = gauge(
    'relay_witness_up',
    'Whether a witness has cosigned the last checkpoint that it was given: 1 or 0; /health has the reason.',
    ['witness'],
  );
  const cosigned = gauge(
    'relay_witness_cosigned_timestamp_seconds',
    'When a witness has cosigned last, by its own clock, Unix time; absent before.',
    ['witness'],
  );
  const rows = STATE.map(([name, help, value]) => ({ one: gauge(name, help), value }));
  const sums = gauge(
    'relay_payment_units',
    'Sums of the books in atomic units of the asset: charged = served + refunded + open, and received = charged - missing + unattributed, up to the last block compared; corrected: charged, and on the chain in another transaction than was recorded.',
    ['sum'],
  );
  const difference = gauge(
    'relay_books_difference_units',
    'By how much the balance of the payee and the transfers in the blocks that are compared differ, in atomic units; 0: they agree.',
  );
  const open = gauge('relay_payments_open', 'Payments that are open, by state.', ['state']);
  const openUnits = gauge('relay_payments_open_units', 'Their amounts, in atomic units.', ['state']);
  const oldest = gauge(
    'relay_payments_open_oldest_seconds',
    'How long the oldest of them has been in this state; 0 without one.',
    ['state'],
  );

  function showParts({ checks, conditions }: StateNow): void {
    problems.reset();
    for (const [name, state] of Object.entries(checks))
      if (state !== null) parts.set({ part: labelOf(name) }, Number(state.ok));
    for (const { part, code } of conditions) problems.set({ part: labelOf(part), reason: code }, 1);
  }
  /** What is unknown is absent, and not what it was. */
  function showPayments(payments: PaymentFigures | null): void {
    for (const one of [sums, open, openUnits, oldest]) one.reset();
    difference.remove();
    if (payments === null) return;
    const { units, differenceUnits, open: states } = payments;
    difference.set(differenceUnits);
    for (const [sum, value] of Object.entries(units)) sums.set({ sum }, value);
    for (const [state, figures] of Object.entries(states)) {
      open.set({ state }, figures.payments);
      openUnits.set({ state }, figures.units);
      oldest.set({ state }, figures.oldestSeconds);
    }
  }
  function showWitnesses({ witnesses }: WitnessesStatus): void {
    for (const { name: witness, refusal, cosignedAt } of witnesses) {
      witnessUp.set({ witness }, Number(refusal === null));
      if (cosignedAt !== null) cosigned.set({ witness }, Date.parse(cosignedAt) / 1000);
    }
  }
  return (now) => {
    info.set({ ...build, storage: now.storage }, 1);
    showParts(now);
    for (const { one: gauge, value } of rows) {
      const known = value(now);
      if (known === null) gauge.remove();
      else gauge.set(known);
    }
    showPayments(now.payments);
    if (now.witnesses !== null) showWitnesses(now.witnesses);
  };
}

/** As in `event_log`. */
const labelOf = (part: string): string => part.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
