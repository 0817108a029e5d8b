// The decision model: what was recommended and why, and what became of it once a job named it.
// It leaves the job and its receipt to their own models, and what a decision approves to the log.
import { boolean, index, integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { ErrorCategory } from '#src/domain/event-fields.ts';
import type { DecisionRecorded } from '#src/domain/events/decision.ts';

/** The facts that are shown: the others, and the buyer's policy, stay in the event. */
export type ShownFacts = Pick<
  DecisionRecorded['facts'],
  'price' | 'network' | 'payTo' | 'trustScore' | 'recentFailureRate' | 'policyVerdict'
>;

type Reasons = DecisionRecorded['reasons'];

export const decisions = pgTable(
  'decisions',
  {
    decisionId: text('decision_id').primaryKey(),
    recommendation: text().$type<DecisionRecorded['recommendation']>().notNull(),
    confidence: text().$type<DecisionRecorded['confidence']>().notNull(),
    blockingIssues: jsonb('blocking_issues').$type<Reasons>().notNull(),
    warnings: jsonb().$type<Reasons>().notNull(),
    reasons: jsonb().$type<Reasons>().notNull(),
    actionHash: text('action_hash').notNull(),
    policyHash: text('policy_hash').notNull(),
    facts: jsonb().$type<ShownFacts>().notNull(),
    createdAt: text('created_at').notNull(),
    expiresAt: text('expires_at').notNull(),
    /** Of the job that was started last: each payer may have a decision executed once. */
    outcomeStatus: text('outcome_status')
      .$type<'pending_execution' | 'running' | 'succeeded' | 'failed'>()
      .notNull(),
    jobId: text('job_id'),
    receiptId: text('receipt_id'),
    receiptVerified: boolean('receipt_verified').notNull(),
    responseStatus: integer('response_status'),
    errorCategory: text('error_category').$type<ErrorCategory>(),
    attempts: integer().notNull(),
    position: text().notNull(),
  },
  (table) => [index('decisions_newest').on(table.createdAt, table.decisionId)],
);

export type DecisionRow = Omit<typeof decisions.$inferSelect, 'position'>;
