// relay payments: the open payments or all of them, and sums by period.
import { isRefundDue, type Ledger } from '#src/domain/payment/ledger.ts';
import { iso } from '#src/lib/iso.ts';
import {
  isIn,
  isWithinPeriod,
  listAllPayments,
  openPaymentRows,
  type PaymentRow,
  type Period,
  selecting,
  type TransferRow,
  unattributedTransfers,
} from '#src/usecases/payments/list-payments.ts';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import {
  type Balance,
  balanceOf,
  contradictsItself,
  isWorkLeft,
  sumPayments,
} from '#src/usecases/payments/sum-payments.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { readLogConfig } from '../config.ts';
import { claimOfKey } from '../usecases/execution/execution-call.ts';
import { CannotRun, EXIT } from './exit.ts';
import { withLog } from './operator.ts';
import {
  csvLine,
  csvTable,
  jsonItem,
  plain,
  print,
  printAll,
  printError,
  printer,
  printJson,
  recordTable,
  table,
} from './terminal.ts';

type Filter = 'unserved' | 'refundable' | 'unknown' | 'missing' | 'corrected';
type Form = { readonly csv?: true; readonly json?: true };

export type ListOptions = Form & { readonly [K in Filter]?: true } & {
  readonly all?: true;
  readonly payer?: string;
  readonly transaction?: string;
  readonly key?: string;
  readonly job?: string;
  /** Unix ms. */
  readonly since?: number;
  readonly until?: number;
};

const FILTERS: Readonly<Record<Filter, (row: PaymentRow) => boolean>> = {
  unserved: ({ state }) => state === 'unserved',
  refundable: ({ state, since }) => isRefundDue(state, since, Date.now()),
  unknown: ({ state }) => state === 'unknown',
  missing: ({ state }) => state === 'missing',
  corrected: ({ statedTransaction }) => statedTransaction !== null,
};

const FILTER_NAMES = Object.keys(FILTERS) as Filter[];

/** A payment that has one of them is listed in whatever state it is. */
const SELECTORS = ['payer', 'transaction', 'key', 'job'] as const;

const TITLES = ['state', 'since', 'amount', 'payer', 'job', 'transaction', 'refund', 'id'];

type Row = PaymentRow | TransferRow;

/** Of a list that is printed while it is read: its other cells are of one length, or the last that are filled. */
const WIDTHS = [10, 24, 12, 42, 30];

const aligned = (texts: readonly string[]): string =>
  texts.map((text, i) => text.padEnd(WIDTHS[i] ?? 0)).join('  ');

type Shown = (row: Row) => string;

/** In the order of the titles. */
const cells = (row: Row, showAmount: Shown): string[] =>
  [
    row.state,
    row.since,
    showAmount(row),
    row.payer ?? '-',
    row.jobId ?? '-',
    transactionOf(row),
    row.refundTransaction ?? '-',
    nameOf(row),
  ].map(plain);

const transactionOf = ({ transaction, statedTransaction }: Row): string =>
  `${transaction ?? '-'}${statedTransaction === null ? '' : `(stated:${statedTransaction})`}`;

/** A transfer without a payment has no id: its block is shown instead. */
const nameOf = (row: Row): string => ('block' in row ? `block ${row.block}` : row.id);

const FIELDS = [
  'id',
  'state',
  'payer',
  'network',
  'asset',
  'amount',
  'nonce',
  'validBefore',
  'transaction',
  'refundTransaction',
  'jobId',
  'since',
  'reservedAt',
  'settledAt',
  'refundBegunAt',
  'refundedAt',
  'statedTransaction',
] as const;

/** Exits with 3 if anything of the log is left to do, whatever is listed. */
export async function listPayments(options: ListOptions): Promise<void> {
  demandOneForm(options);
  const filters = FILTER_NAMES.filter((name) => options[name]);
  if (options.all && filters.length > 0) throw new CannotRun(`use --all without --${filters[0]}`);
  const period = periodOf(options);
  const isSelected = SELECTORS.some((name) => options[name] !== undefined);
  const claimOf = options.key === undefined ? undefined : await claimsOf(options.key);
  async function* rowsOf(deps: JournalDeps, ledger: Ledger): AsyncGenerator<Row> {
    const isWanted = selecting(deps.log, { ...options, claimOf });
    // A corrected charge is rarely open.
    const isOfAny = options.all || options.corrected || isSelected;
    for await (const row of isOfAny ? listAllPayments(deps) : openPaymentRows(ledger, Date.now())) {
      const isNamed = filters.length === 0 || filters.some((name) => FILTERS[name](row));
      if (isNamed && isWithinPeriod(row, period) && (await isWanted(row))) yield row;
    }
    if (options.all || options.missing)
      for await (const transfer of unattributedTransfers(deps.log, ledger))
        if (isIn(transfer.since, period) && (await isWanted(transfer))) yield transfer;
  }
  await withLog(async (deps) => {
    const ledger = await readLedger(deps.log);
    if (isWorkLeft(ledger, Date.now())) process.exitCode = EXIT.open;
    const listed = rowsOf(deps, ledger);
    const { showAmount } = await import('#src/app/money.ts');
    const isNarrowed = isSelected || filters.length > 0 || period.since || period.until;
    const none = isNarrowed
      ? 'No payment matches these options.'
      : `${options.all ? 'No payment is recorded' : 'Nothing is open'}.`;
    if (options.all || !process.stdout.isTTY || options.csv || options.json)
      return printAll(lines(listed, options, showAmount, none));
    const rows: string[][] = [];
    for await (const row of listed) rows.push(cells(row, showAmount));
    print(...(rows.length === 0 ? [none] : table(TITLES, rows)));
  });
}

/** Name of the stream of an idempotency key, by its payer. */
async function claimsOf(key: string): Promise<(payer: string) => string> {
  const { openKeyedHash } = await import('#src/app/operator.ts');
  const keyedHash = openKeyedHash(readLogConfig());
  return (payer) => claimOfKey(keyedHash, payer, key);
}

async function* lines(
  rows: AsyncIterable<Row>,
  { csv, json }: Form,
  showAmount: Shown,
  none: string,
): AsyncGenerator<string> {
  if (csv) yield csvLine(FIELDS);
  let count = 0;
  for await (const row of rows) {
    if (json) yield jsonItem(row, count);
    else if (csv) yield csvLine(FIELDS.map((name) => (name === 'id' ? nameOf(row) : row[name])));
    else {
      if (count === 0) yield aligned(TITLES);
      yield aligned(cells(row, showAmount));
    }
    count++;
  }
  if (json) yield count === 0 ? '[]' : ']';
  // Beside the rows: a program that reads them gets none.
  else if (count === 0 && !csv) printer(!process.stdout.isTTY)(none);
}

const SUM_FIELDS = ['period', 'network', 'asset', 'charged', 'served', 'refunded', 'open'] as const;

export async function sum(unit: 'day' | 'month', options: ListOptions): Promise<void> {
  demandOneForm(options);
  const other = (['all', ...FILTER_NAMES, ...SELECTORS] as const).find((name) => options[name]);
  if (other !== undefined) throw new CannotRun(`use --sum without --${other}: it sums up all payments`);
  const { rows, ledger } = await withLog(async ({ log }) => ({
    rows: await sumPayments(log, unit, periodOf(options)),
    ledger: await readLedger(log),
  }));
  if (isWorkLeft(ledger, Date.now())) process.exitCode = EXIT.open;
  if (options.json) printJson(rows);
  else if (options.csv) print(...csvTable(SUM_FIELDS, rows));
  else if (rows.length === 0) printer(!process.stdout.isTTY)('No payment was charged in this time.');
  else print(...recordTable(SUM_FIELDS, rows));
}

function demandOneForm({ csv, json }: Form): void {
  if (csv && json) throw new CannotRun('use either --csv or --json');
}

function periodOf({ since, until }: Pick<ListOptions, 'since' | 'until'>): Period {
  if (since !== undefined && until !== undefined && since >= until)
    throw new CannotRun('--since must be before --until');
  const instant = (ms: number | undefined) => (ms === undefined ? null : iso(ms));
  return { since: instant(since), until: instant(until) };
}

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
  else print(...recordTable(BALANCE, rows));
  for (const row of rows.filter(({ balanced }) => !balanced)) printError(problemOf(row, ledger));
  if (isWorkLeft(ledger, Date.now())) process.exitCode = EXIT.open;
  return !contradictsItself(ledger);
}

const problemOf = (row: Balance, ledger: Ledger): string =>
  contradictsItself(ledger, row)
    ? `the sums of ${row.asset} on ${row.network} contradict each other: run relay audit`
    : `the chain disagrees with the sums of ${row.asset} on ${row.network}: run relay payments reconcile, then relay audit --rpc`;
