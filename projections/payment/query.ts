import { gte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import type { Ledger } from '#src/domain/payment/ledger.ts';
import {
  CHAIN_BOOKS,
  OPEN_PAYMENTS,
  PAYMENT_SUMS,
  REFUSED_PAYMENTS,
  UNCONFIRMED_CHARGES,
} from './project.ts';
import { chainBooks, openPayments, paymentSums, refusedPayments, unconfirmedCharges } from './table.ts';

export function paymentQueries(db: PgDatabase<PgQueryResultHKT>) {
  return {
    /**
     * The ledger of one moment. At most `limit` of what is open, the oldest first, of what is unconfirmed, and of the refusals
     * whose authorizations end at `since` (RFC 3339) or later. The sums are those of all payments.
     */
    ledger(limit: number, since: string): Promise<Ledger> {
      return db.transaction(
        async (tx) => {
          const open = await tx
            .select()
            .from(openPayments)
            .orderBy(openPayments.reservedAt, openPayments.stream)
            .limit(limit);
          const unconfirmed = await tx
            .select()
            .from(unconfirmedCharges)
            .orderBy(unconfirmedCharges.settledAt, unconfirmedCharges.stream)
            .limit(limit);
          const refused = await tx
            .select()
            .from(refusedPayments)
            .where(gte(refusedPayments.endsAt, since))
            .orderBy(refusedPayments.endsAt, refusedPayments.stream)
            .limit(limit);
          const sums = await tx.select().from(paymentSums).orderBy(sql`${paymentSums.id} collate "C"`);
          const books = await tx.select().from(chainBooks).orderBy(sql`${chainBooks.id} collate "C"`);
          return {
            entries: new Map(open.map((row) => [row.stream, OPEN_PAYMENTS.fromRow(row)])),
            unconfirmed: new Map(unconfirmed.map((row) => [row.stream, UNCONFIRMED_CHARGES.fromRow(row)])),
            refused: new Map(refused.map((row) => [row.stream, REFUSED_PAYMENTS.fromRow(row)])),
            books: sums.map(PAYMENT_SUMS.fromRow),
            comparisons: new Map(books.map((row) => [row.id, CHAIN_BOOKS.fromRow(row)])),
          };
        },
        { isolationLevel: 'repeatable read', accessMode: 'read only' },
      );
    },
  };
}
