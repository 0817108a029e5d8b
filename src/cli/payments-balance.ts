// relay payments --balance: the sums of the books.
import {
  type Balance,
  balanceOf,
  contradictsItself,
  isWorkLeft,
} from '#src/usecases/payments/balance-payments.ts';
import { type Ledger, readLedger } from '#src/usecases/payments/read-ledger.ts';
import { EXIT } from './exit.ts';
import { withLog } from './operator.ts';
import { print, printError, printJson, table } from './terminal.ts';

const BALANCE = [
  'network',
  'asset',
  'charged',
  'served',
  'refunded',
  'open',
  'missing',
  'corrected',
  'unattributed',
  'received',
  'upToBlock',
] as const;

/** Exits with 3 if anything is left to do. Returns false if the books contradict themselves. */
export async function balance({ json }: { readonly json?: true }): Promise<boolean> {
  const ledger = await withLog(({ log }) => readLedger(log));
  const rows = balanceOf(ledger);
  if (json) printJson(rows);
  else if (rows.length === 0) print('No payment was charged.');
  else
    print(
      ...table(
        BALANCE,
        rows.map((row) => BALANCE.map((name) => String(row[name] ?? '-'))),
      ),
    );
  for (const row of rows.filter(({ balanced }) => !balanced)) printError(problemOf(row, ledger));
  if (isWorkLeft(ledger, Date.now())) process.exitCode = EXIT.open;
  return !contradictsItself(ledger);
}

const problemOf = (row: Balance, ledger: Ledger): string =>
  contradictsItself(ledger, row)
    ? `the sums of ${row.asset} on ${row.network} contradict each other: run relay audit`
    : `the chain disagrees with the sums of ${row.asset} on ${row.network}: run relay payments reconcile, then relay audit --rpc`;
