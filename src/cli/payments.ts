// relay payments: the payments that need an operator (paid and not served, interrupted, or unconfirmed), their resolution
// by hand, their refunds, and the balance.
import { type Command, InvalidArgumentError } from 'commander';
import { balancePayments } from '#src/usecases/payments/balance-payments.ts';
import { listPayments, type OpenPayment } from '#src/usecases/payments/list-payments.ts';
import { type Refunded, recordRefund } from '#src/usecases/payments/record-refund.ts';
import {
  type OperatorVerdict,
  type Resolved,
  resolvePayment,
} from '#src/usecases/payments/resolve-payment.ts';
import { readRpcUrl } from '../config.ts';
import type { OpenState } from '../domain/payment/ledger.ts';
import { CannotRun, exiting, FoundWrong } from './exit.ts';
import { withLog } from './operator.ts';
import { addReconcile } from './payments-reconcile.ts';
import { plain, print, printError, printer, printJson, table } from './terminal.ts';

type ListOptions = {
  readonly unserved?: true;
  readonly refundable?: true;
  readonly unknown?: true;
  readonly missing?: true;
  readonly balance?: true;
  readonly json?: true;
};
type RefundOptions = { readonly tx: string; readonly unverified?: true; readonly json?: true };
type ResolveOptions = { readonly settled?: string | true; readonly notSettled?: true; readonly json?: true };

const HELP = `
States:
  unserved     settled, its call never started: the same payment header still executes it, without a new charge
  refundable   settled, and its call was interrupted or never sent: it is not sent again; return the money, then use
               "refund" to record it
  unknown      the settlement is unconfirmed: look it up on the chain, then use "resolve"
  missing      charged in the books, and the chain has no transfer of it
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it.`;

const RESOLVE_HELP = `
Look the payment up on the chain first (its payer, and the transfers to your X402_PAY_TO). The verdict is recorded and
cannot be undone. --not-settled is refused until one minute after the authorization has expired.`;

const REFUND_HELP = `
Send the money first: at least the amount in the same asset to the payer. The transfer is looked up at X402_RPC_URL: it
must have succeeded, must not be older than the payment, and must not be recorded for another refund. Without
X402_RPC_URL the refund needs --unverified and is recorded as stated by the operator. A refunded payment no longer
executes a call. The record cannot be undone.`;

export function addPayments(program: Command): void {
  const payments = program
    .command('payments')
    .description('List payments that were not served, or that could not be confirmed.')
    .option('--unserved', 'only settled and not served: unserved and refundable')
    .option('--refundable', 'only refundable')
    .option('--unknown', 'only unconfirmed')
    .option('--missing', 'only charges that the chain does not have')
    .option(
      '--balance',
      'print charged = served + refunded + open, and received = charged - missing + unattributed, instead',
    )
    .option('--json', 'print an array of JSON')
    .enablePositionalOptions()
    .addHelpText('after', HELP)
    .action(exiting(list));
  payments
    .command('resolve')
    .description('Record what became of an unconfirmed payment.')
    .argument('<id>', 'as the list shows it: payment-…', readId)
    .option('--settled [transaction]', 'it was paid; 0x and 64 hex digits, if known', readTransaction)
    .option('--not-settled', 'it was not paid, and no longer can be')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', RESOLVE_HELP)
    .action(resolve);
  payments
    .command('refund')
    .description('Record the refund of a payment.')
    .argument('<id>', 'as the list shows it: payment-…', readId)
    .requiredOption('--tx <hash>', 'the transfer to the payer: 0x and 64 hex digits', readTransaction)
    .option('--unverified', 'record it without looking at the chain')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', REFUND_HELP)
    .action(refund);
  addReconcile(payments);
}

function readId(text: string): string {
  if (!/^payment-[0-9a-f]{64}$/.test(text))
    throw new InvalidArgumentError('It must be payment- and 64 hex digits.');
  return text;
}

function readTransaction(text: string): string {
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) throw new InvalidArgumentError('It must be 0x and 64 hex digits.');
  return text.toLowerCase();
}

const SELECTED = {
  unserved: ['unserved', 'refundable'],
  refundable: ['refundable'],
  unknown: ['unknown'],
  missing: ['missing'],
} as const;
const OPTIONS = Object.keys(SELECTED) as (keyof typeof SELECTED)[];

/** The union of what the options select; all states without any of them. */
function statesOf(options: ListOptions): ReadonlySet<OpenState> {
  const selected = OPTIONS.filter((name) => options[name]);
  return new Set((selected.length === 0 ? OPTIONS : selected).flatMap((name) => SELECTED[name]));
}

const TITLES = ['state', 'since', 'amount', 'payer', 'job', 'transaction', 'id'];

/** In the order of the titles. */
const cells = ({ state, since, amount, payer, jobId, transaction, id }: OpenPayment): string[] =>
  [state, since, amount, payer, jobId, transaction ?? '-', id].map(plain);

async function list(options: ListOptions): Promise<boolean | undefined> {
  if (options.balance) return balance(options);
  const rows = await withLog((deps) => listPayments(deps, statesOf(options)));
  if (options.json) printJson(rows);
  // Beside the rows: a program that reads them gets none.
  else if (rows.length === 0) printer(!process.stdout.isTTY)('No such payment is open.');
  else if (process.stdout.isTTY) print(...table(TITLES, rows.map(cells)));
  else print(...rows.map((row) => cells(row).join(' ')));
}

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

/** Returns false if the sums do not match. */
async function balance({ json }: ListOptions): Promise<boolean> {
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
  const wrong = rows.filter(({ balanced }) => !balanced);
  for (const { network, asset } of wrong)
    printError(`the sums of ${asset} on ${network} do not balance: run relay audit`);
  return wrong.length === 0;
}

async function refund(id: string, options: RefundOptions): Promise<void> {
  const { tx: transaction, unverified, json } = options;
  const rpcUrl = unverified ? null : readRpcUrl();
  if (rpcUrl === null && !unverified)
    throw new CannotRun(
      'X402_RPC_URL is not set: set it to verify the transfer, or use --unverified (see --help)',
    );
  const findTransfer = rpcUrl === null ? null : await chainReader(rpcUrl);
  const refunded = await withLog((deps) => recordRefund(deps, { id, transaction, findTransfer }));
  if (refunded.outcome === 'refused') {
    const message = REFUSED[refunded.reason](refunded.id, transaction);
    throw refunded.reason === 'chain_unavailable' ? new CannotRun(message) : new FoundWrong(message);
  }
  const verified = findTransfer !== null;
  const { payment, recorded } = refunded;
  const { jobId, payer, amount } = payment;
  if (json) return printJson({ transaction, verified, refunds: [{ id, jobId, payer, amount, recorded }] });
  const how = `${recorded ? 'recorded as refunded' : 'were recorded before'}${verified ? '' : ', unverified'}`;
  print(`${id}: ${amount} units to ${payer} ${how}`);
}

async function chainReader(rpcUrl: string) {
  const { findTransfer } = await import('#src/app/buyer.ts');
  return (query: Parameters<typeof findTransfer>[1]) => findTransfer(rpcUrl, query);
}

type RefusalReason = Extract<Refunded, { outcome: 'refused' }>['reason'];

const REFUSED: Readonly<Record<RefusalReason, (id: string, transaction: string) => string>> = {
  not_charged: (id) => `${id} was not charged: there is nothing to refund`,
  already_refunded: (id) => `${id} was refunded before, by another transfer`,
  job_running: (id) => `the call of ${id} is running: run this again when it has ended`,
  charge_transaction: (id) => `--tx names the charge of ${id}, not its refund`,
  transfer_used: (id, tx) => `${tx} is recorded as the refund of ${id}: one transfer refunds once`,
  transfer_missing: (_id, tx) => `the chain has no transaction ${tx}`,
  transfer_failed: (_id, tx) => `the transaction ${tx} failed: nothing was transferred`,
  transfer_too_small: (_id, tx) => `${tx} transferred less than the amount of the payment to its payer`,
  transfer_before_charge: (_id, tx) => `${tx} is older than the payment`,
  chain_unavailable: () =>
    'X402_RPC_URL does not answer, or serves another network: try again, or use --unverified',
};

async function resolve(id: string, options: ResolveOptions): Promise<void> {
  const verdict = verdictOf(options);
  const resolved = await withLog((deps) => resolvePayment(deps, id, verdict));
  if (resolved.outcome !== 'resolved') throw new FoundWrong(problemOf(id, resolved));
  const next = nextOf(verdict);
  if (options.json) return printJson({ id, jobId: resolved.jobId, ...verdict, next });
  print(
    `${id} is recorded as ${verdict.kind === 'settled' ? 'settled' : 'not settled'} (job ${resolved.jobId}).`,
  );
  print(next);
}

function verdictOf({ settled, notSettled }: ResolveOptions): OperatorVerdict {
  if ((settled === undefined) === (notSettled === undefined))
    throw new CannotRun('use either --settled or --not-settled (see --help)');
  if (settled === undefined) return { kind: 'not_settled' };
  if (settled === true) return { kind: 'settled', transaction: null };
  return { kind: 'settled', transaction: settled };
}

function problemOf(id: string, resolved: Exclude<Resolved, { outcome: 'resolved' }>): string {
  if (resolved.outcome === 'nothing_to_resolve')
    return `nothing to resolve: ${id} ${resolved.status === 'absent' ? 'is not in the log' : `is ${resolved.status}`}`;
  const until = new Date(resolved.validBefore * 1000).toISOString();
  return `too early: the authorization of ${id} can be used until ${until}; use --not-settled over a minute after that`;
}

const nextOf = ({ kind }: OperatorVerdict): string =>
  kind === 'settled'
    ? 'The same payment header now executes the call, without a new charge. Until then it is listed as unserved.'
    : 'No money moved: the buyer may pay again, and its idempotency key is free.';
