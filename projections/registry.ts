// The read models. Everything else follows from this list: what the projector projects, a rebuild builds again, a purge
// deletes, and which queries there are.
import { type SQL, sql } from 'drizzle-orm';
import { projectDecision } from './decision/project.ts';
import { decisionQueries } from './decision/query.ts';
import { decisions } from './decision/table.ts';
import { projectJob } from './job/project.ts';
import { jobQueries } from './job/query.ts';
import { jobs } from './job/table.ts';
import type { ReadModel } from './model.ts';
import { projectMonitoring } from './monitoring/project.ts';
import { monitoringQueries } from './monitoring/query.ts';
import { monitoringHours, monitoringMinutes, monitoringTotals, runningJobs } from './monitoring/table.ts';
import { projectPayment } from './payment/project.ts';
import { paymentQueries } from './payment/query.ts';
import {
  chainBooks,
  openPayments,
  paidJobs,
  paymentSums,
  refusedPayments,
  unconfirmedCharges,
} from './payment/table.ts';
import { projectProof } from './proof/project.ts';
import { proofQueries } from './proof/query.ts';
import { proofs } from './proof/table.ts';
import { projectReceipt } from './receipt/project.ts';
import { receiptQueries } from './receipt/query.ts';
import { receipts, revokedKeys } from './receipt/table.ts';
import type { Db } from './rows.ts';
import { projectSchedule } from './schedule/project.ts';
import { scheduleQueries } from './schedule/query.ts';
import { scheduleRuns, schedules } from './schedule/table.ts';
import { projectTransparency } from './transparency/project.ts';
import { transparencyQueries } from './transparency/query.ts';
import {
  transparencyCheckpoint,
  transparencyLeaves,
  transparencyTiles,
  transparencyTree,
} from './transparency/table.ts';
import { projectTrust } from './trust/project.ts';
import { trustQueries } from './trust/query.ts';
import { trustMinutes, trustOpenPayments, trustTotals } from './trust/table.ts';

const ended = sql`"status" <> 'running'`;
const always = sql`true`;

/** A model's name is letters only. Another name is another model: its rows are projected again from the first event. */
export const MODELS = declared({
  job: {
    version: 3,
    tables: [jobs],
    project: projectJob,
    queries: jobQueries,
    needs: { find: 'rows', findForVerification: 'rows' },
    retained: { table: 'jobs', time: 'updated_at', ended, horizon: 'jobs' },
  },
  receipt: {
    version: 2,
    tables: [receipts, revokedKeys],
    project: projectReceipt,
    queries: receiptQueries,
    needs: { find: 'rows' },
    retained: { table: 'receipts', time: 'signed_at', ended: always, horizon: 'receipts' },
  },
  proof: {
    version: 1,
    tables: [proofs],
    project: projectProof,
    queries: proofQueries,
    needs: { find: 'rows', recent: 'whole', recentFailures: 'whole' },
    retained: { table: 'proofs', time: 'updated_at', ended, horizon: 'jobs' },
  },
  monitoring: {
    version: 3,
    tables: [monitoringMinutes, monitoringHours, monitoringTotals, runningJobs],
    project: projectMonitoring,
    queries: monitoringQueries,
    needs: { summary: 'whole', totals: 'whole', series: 'whole', recoveryCandidates: 'rows' },
  },
  trust: {
    version: 4,
    tables: [trustTotals, trustMinutes, trustOpenPayments],
    project: projectTrust,
    queries: trustQueries,
    needs: { payments: 'rows', receipts: 'whole' },
  },
  transparency: {
    version: 3,
    tables: [transparencyTree, transparencyTiles, transparencyLeaves, transparencyCheckpoint],
    project: projectTransparency,
    queries: transparencyQueries,
    needs: {
      tree: 'rows',
      tile: 'rows',
      leafIndex: 'rows',
      jobOf: 'rows',
      checkpoint: 'rows',
      cosigned: 'rows',
    },
  },
  decision: {
    version: 1,
    tables: [decisions],
    project: projectDecision,
    queries: decisionQueries,
    needs: { find: 'rows', recent: 'whole' },
    retained: { table: 'decisions', time: 'created_at', ended: always, horizon: 'receipts' },
  },
  payment: {
    version: 1,
    tables: [openPayments, unconfirmedCharges, refusedPayments, paidJobs, paymentSums, chainBooks],
    project: projectPayment,
    queries: paymentQueries,
    needs: { ledger: 'whole' },
    retained: { table: 'refused_payments', time: 'ends_at', ended: always, horizon: 'receipts' },
  },
  schedule: {
    version: 3,
    tables: [schedules, scheduleRuns],
    project: projectSchedule,
    queries: scheduleQueries,
    needs: { find: 'rows', due: 'rows' },
    retained: {
      table: 'schedule_runs',
      time: 'due_at',
      ended: sql`"state" in ('executed', 'skipped')`,
      horizon: 'receipts',
    },
  },
});

export const READ_MODELS: readonly ReadModel[] = Object.entries(MODELS).map(([name, model]) => ({
  ...model,
  name,
}));

/** Rows that a horizon covers, by a time in their own columns that no later event changes. */
export type Retained = {
  readonly table: string;
  readonly time: string;
  /** Rows that may be deleted. */
  readonly ended: SQL;
  /** Rows of jobs are kept as long as jobs, the others as long as receipts. */
  readonly horizon: 'jobs' | 'receipts';
};

export const RETAINED: readonly Retained[] = Object.values(MODELS).flatMap((model) =>
  'retained' in model ? [model.retained] : [],
);

/** `rows`: a row that is not projected yet is missing. `whole`: counts and lists, whose answer would be wrong until then. */
export type Needs = 'rows' | 'whole';

type Queries = (db: Db) => object;
type Declared = Omit<ReadModel, 'name'> & { readonly queries: Queries; readonly retained?: Retained };
type NeedsOf<Q extends Queries> = { readonly [N in keyof ReturnType<Q>]: Needs };

/** Each query has an entry in `needs`. */
function declared<M extends Readonly<Record<string, Declared>>>(
  models: M & { readonly [N in keyof M]: { readonly needs: NeedsOf<M[N]['queries']> } },
): M {
  return models;
}
