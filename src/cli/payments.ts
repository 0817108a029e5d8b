// relay payments: what an operator looks after (paid and not served, interrupted, or of unknown fate), and ends by hand.
import { type Command, InvalidArgumentError } from 'commander';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { listPayments, type OpenPayment } from '#src/usecases/payments/list-payments.ts';
import {
  type OperatorVerdict,
  type Resolved,
  resolvePayment,
} from '#src/usecases/payments/resolve-payment.ts';
import { readLogConfig } from '../config.ts';
import type { OpenState } from '../domain/payment/ledger.ts';
import { CannotRun, type End, EXIT, FoundWrong } from './exit.ts';
import { paint, plain, print, printJson } from './terminal.ts';

type ListOptions = { readonly unserved?: true; readonly unknown?: true; readonly json?: true };
type ResolveOptions = { readonly settled?: string | true; readonly notSettled?: true; readonly json?: true };

const HELP = `
States:
  unserved     settled, its call never started: the buyer's same payment header still executes it, for nothing more
  refundable   settled, and its call was interrupted or never sent: nobody will send it again
  unknown      nobody knows whether the money moved: ask the chain, then say so with "resolve"
The log of DATA_DIR, or of EVENTSTORE_URL, is read, also while a service runs on it.`;

const RESOLVE_HELP = `
Look the payment up on the chain first (its payer, and the transfers to your X402_PAY_TO). What you say is recorded and
cannot be taken back. --not-settled is refused until a minute after its authorization has ended.`;

export function addPayments(program: Command, end: End): void {
  const payments = program
    .command('payments')
    .description('payments that bought nothing yet, or that nobody could confirm')
    .option('--unserved', 'only what was settled and not served: unserved and refundable')
    .option('--unknown', 'only what nobody could confirm')
    .option('--json', 'for machines: an array')
    .enablePositionalOptions()
    .addHelpText('after', HELP)
    .action(async (options: ListOptions) => {
      await list(options);
      end(EXIT.good);
    });
  payments
    .command('resolve')
    .description('say by hand what became of a payment of unknown fate')
    .argument('<id>', 'as the list shows it: payment-…', readId)
    .option('--settled [transaction]', 'the money came; 0x and 64 hex digits, where it can be named')
    .option('--not-settled', 'the money did not come, and no longer can')
    .option('--json', 'for machines')
    .addHelpText('after', RESOLVE_HELP)
    .action(async (id: string, options: ResolveOptions) => {
      await resolve(id, options);
      end(EXIT.good);
    });
}

function readId(text: string): string {
  if (!/^payment-[0-9a-f]{64}$/.test(text))
    throw new InvalidArgumentError('It is payment- and 64 hex digits.');
  return text;
}

/** `--unserved` and `--unknown` together are all, as neither is. */
function statesOf({ unserved, unknown }: ListOptions): ReadonlySet<OpenState> {
  const all = unserved === unknown;
  const paid = all || unserved ? (['unserved', 'refundable'] as const) : [];
  return new Set<OpenState>([...paid, ...(all || unknown ? (['unknown'] as const) : [])]);
}

async function list(options: ListOptions): Promise<void> {
  const rows = await withLog((deps) => listPayments(deps, statesOf(options)));
  if (options.json) return printJson(rows);
  if (process.stdout.isTTY) print(...table(rows));
  else if (rows.length > 0) print(...rows.map((row) => cells(row).join(' ')));
}

async function withLog<T>(work: (deps: JournalDeps) => Promise<T>): Promise<T> {
  const config = readLogConfig();
  const { openOperatorLog } = await import('#src/app/operator-log.ts');
  const deps = await openOperatorLog(config);
  try {
    return await work(deps);
  } finally {
    await deps.log.close();
  }
}

const TITLES = ['state', 'since', 'amount', 'payer', 'job', 'transaction', 'id'];

/** In the order of the titles; one word each. */
const cells = ({ state, since, amount, payer, jobId, transaction, id }: OpenPayment): string[] =>
  [state, since, amount, payer, jobId, transaction ?? '-', id].map(plain);

function table(rows: readonly OpenPayment[]): string[] {
  if (rows.length === 0) return ['Nothing to look after.'];
  const lines = rows.map(cells);
  const widths = TITLES.map((title, i) =>
    Math.max(title.length, ...lines.map((line) => line[i]?.length ?? 0)),
  );
  const aligned = (line: readonly string[]) =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [paint('bold', aligned(TITLES)), ...lines.map(aligned)];
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
    throw new CannotRun('say either --settled or --not-settled (see --help)');
  if (settled === undefined) return { kind: 'not_settled' };
  if (settled === true) return { kind: 'settled', transaction: null };
  if (!/^0x[0-9a-fA-F]{64}$/.test(settled))
    throw new CannotRun('the transaction of --settled is 0x and 64 hex digits (see --help)');
  return { kind: 'settled', transaction: settled.toLowerCase() };
}

function problemOf(id: string, resolved: Exclude<Resolved, { outcome: 'resolved' }>): string {
  if (resolved.outcome === 'nothing_to_resolve')
    return `nothing to resolve: ${id} ${resolved.status === 'absent' ? 'is not in the log' : `is ${resolved.status}`}`;
  const until = new Date(resolved.validBefore * 1000).toISOString();
  return `too early: the authorization of ${id} can be used until ${until}; say --not-settled over a minute after that`;
}

const nextOf = ({ kind }: OperatorVerdict): string =>
  kind === 'settled'
    ? 'The buyer’s same payment header now executes the call, without a new charge. Until then it is listed as unserved.'
    : 'No money moved: the buyer may pay anew, and its idempotency key is free again.';
