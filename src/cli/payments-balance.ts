// relay payments --balance: the sums of the books.
import { balancePayments } from '#src/usecases/payments/balance-payments.ts';
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
  'unattributed',
  'received',
  'upToBlock',
] as const;

/** Exits with 3 if the chain lacks charges. Returns false if the sums do not balance. */
export async function balance({ json }: { readonly json?: true }): Promise<boolean> {
  const rows = await withLog(({ log }) => balancePayments(log));
  if (json) printJson(rows);
  else if (rows.length === 0) print('No payment was charged.');
  else
    print(
      ...table(
        BALANCE,
        rows.map((row) => BALANCE.map((name) => String(row[name] ?? '-'))),
      ),
    );
  if (rows.some(({ missing }) => missing !== '0')) process.exitCode = EXIT.open;
  const wrong = rows.filter(({ balanced }) => !balanced);
  for (const { network, asset } of wrong)
    printError(`the sums of ${asset} on ${network} do not balance: run relay audit`);
  return wrong.length === 0;
}
