// The ledger of an event log in memory, as a command reads it.
import type {
  Ledger,
  LedgerEntry,
  PaidJob,
  RefusedPayment,
  Sums,
  UnconfirmedCharge,
} from '#src/domain/payment/ledger.ts';
import { accountKey, type ChainAccount, type ChainBooks } from '#src/domain/payment/reconciliation.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { FOLDED_TYPES, foldLedger } from '#src/usecases/process/fold-ledger.ts';
import { eventsOf } from '#src/usecases/process/read-events.ts';

/** One read of the whole event log. Throws for an event that it cannot read. */
export const readLedger = (log: EventLog): Promise<Ledger> => ledgerReader(log)();

/** Each call reads the events that the log has beyond those that were read. */
export function ledgerReader(log: EventLog): () => Promise<Ledger> {
  const [entries, sums] = [table<LedgerEntry>(), table<Sums>()];
  const [unconfirmed, refused] = [table<UnconfirmedCharge>(sharingAccounts()), table<RefusedPayment>()];
  const [comparisons, jobs] = [table<ChainBooks>(), table<PaidJob>()];
  const tables = { entries, unconfirmed, refused, jobs, sums, comparisons };
  let after: string | null = null;
  return async () => {
    for await (const { recorded, event } of eventsOf(log, FOLDED_TYPES, after)) {
      await foldLedger(tables, log, recorded, event);
      after = recorded.position;
    }
    return {
      entries: entries.rows,
      unconfirmed: unconfirmed.rows,
      refused: refused.rows,
      books: [...sums.rows.values()],
      comparisons: comparisons.rows,
    };
  };
}

function table<R>(kept: (row: R) => R = (row) => row) {
  const rows = new Map<string, R>();
  return {
    rows,
    get: async (key: string): Promise<R | null> => rows.get(key) ?? null,
    set(key: string, row: R | null): void {
      if (row === null) rows.delete(key);
      else rows.set(key, kept(row));
    },
  };
}

/** One object for the account of all charges: there may be many. */
function sharingAccounts() {
  const accounts = new Map<string, ChainAccount>();
  return (charge: UnconfirmedCharge): UnconfirmedCharge => {
    const key = accountKey(charge.account);
    const account = accounts.get(key) ?? charge.account;
    accounts.set(key, account);
    return { ...charge, account };
  };
}
