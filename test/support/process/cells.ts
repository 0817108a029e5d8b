// The deployments in which the paid journeys run: one process or two, over the embedded event log, or over EventStoreDB and
// PostgreSQL. The runner repeats them in each cell of this matrix (`bun test/run.ts --cells`).
import process from 'node:process';

export const CELLS = ['1-embedded', '2-embedded', '1-eventstoredb', '2-eventstoredb'] as const;
export type Cell = (typeof CELLS)[number];

/** The environment variable in which the runner passes the cell; absent: the first one. */
export const PAID_CELL = 'RELAY_PAID_CELL';
/** The environment variable that names the file for one line for each payment: its row. */
export const PAID_ROWS = 'RELAY_PAID_ROWS';

export const cellOf = (env: Readonly<Record<string, string | undefined>>): Cell =>
  CELLS.find((name) => name === env[PAID_CELL]) ?? CELLS[0];

const cell = cellOf(process.env);
export const PROCESSES = cell.startsWith('2') ? 2 : 1;
export const ON_SERVER = cell.endsWith('eventstoredb');
/**
 * One process, whose read models may be embedded. Only its start proves that no other owner exists: else a settlement is
 * observed before it is taken over.
 */
export const IS_ALONE = cell === CELLS[0];
