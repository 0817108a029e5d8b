// relay payments: the payments that need an operator (paid and not served, interrupted, or unconfirmed), and their
// resolution by hand.
import { type Command, InvalidArgumentError } from 'commander';
import { listPayments, type OpenPayment } from '#src/usecases/payments/list-payments.ts';
import {
  type OperatorVerdict,
  type Resolved,
  resolvePayment,
} from '#src/usecases/payments/resolve-payment.ts';
import type { OpenState } from '../domain/payment/ledger.ts';
import { CannotRun, type End, FoundWrong, onAction } from './exit.ts';
import { withLog } from './operator.ts';
import { plain, print, printJson, table } from './terminal.ts';

type ListOptions = { readonly unserved?: true; readonly unknown?: true; readonly json?: true };
type ResolveOptions = { readonly settled?: string | true; readonly notSettled?: true; readonly json?: true };

const HELP = `
States:
  unserved     settled, its call never started: the same payment header still executes it, without a new charge
  refundable   settled, and its call was interrupted or never sent: it is not sent again
  unknown      the settlement is unconfirmed: look it up on the chain, then use "resolve"
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it.`;

const RESOLVE_HELP = `
Look the payment up on the chain first (its payer, and the transfers to your X402_PAY_TO). The verdict is recorded and
cannot be undone. --not-settled is refused until one minute after the authorization has expired.`;

export function addPayments(program: Command, end: End): void {
  const payments = program
    .command('payments')
    .description('List payments that were not served, or that could not be confirmed.')
    .option('--unserved', 'only settled and not served: unserved and refundable')
    .option('--unknown', 'only unconfirmed')
    .option('--json', 'print an array of JSON')
    .enablePositionalOptions()
    .addHelpText('after', HELP);
  onAction(payments, end, list);
  const resolving = payments
    .command('resolve')
    .description('Record what became of an unconfirmed payment.')
    .argument('<id>', 'as the list shows it: payment-…', readId)
    .option('--settled [transaction]', 'it was paid; 0x and 64 hex digits, if known')
    .option('--not-settled', 'it was not paid, and no longer can be')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', RESOLVE_HELP);
  onAction(resolving, end, resolve);
}

function readId(text: string): string {
  if (!/^payment-[0-9a-f]{64}$/.test(text))
    throw new InvalidArgumentError('It must be payment- and 64 hex digits.');
  return text;
}

/** `--unserved` and `--unknown` together select all, as neither does. */
function statesOf({ unserved, unknown }: ListOptions): ReadonlySet<OpenState> {
  const all = unserved === unknown;
  const paid = all || unserved ? (['unserved', 'refundable'] as const) : [];
  return new Set<OpenState>([...paid, ...(all || unknown ? (['unknown'] as const) : [])]);
}

const TITLES = ['state', 'since', 'amount', 'payer', 'job', 'transaction', 'id'];

/** In the order of the titles. */
const cells = ({ state, since, amount, payer, jobId, transaction, id }: OpenPayment): string[] =>
  [state, since, amount, payer, jobId, transaction ?? '-', id].map(plain);

async function list(options: ListOptions): Promise<void> {
  const rows = await withLog((deps) => listPayments(deps, statesOf(options)));
  if (options.json) return printJson(rows);
  if (rows.length === 0) {
    if (process.stdout.isTTY) print('No open payments.');
  } else if (process.stdout.isTTY) print(...table(TITLES, rows.map(cells)));
  else print(...rows.map((row) => cells(row).join(' ')));
}

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
  if (!isTransaction(settled))
    throw new CannotRun('the transaction of --settled must be 0x and 64 hex digits (see --help)');
  return { kind: 'settled', transaction: settled.toLowerCase() };
}

const isTransaction = (text: string): boolean => /^0x[0-9a-fA-F]{64}$/.test(text);

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
