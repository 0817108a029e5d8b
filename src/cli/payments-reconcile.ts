// relay payments reconcile: compares the books with the chain once, and prints what is open.
import type { Command } from 'commander';
import type { ChainReconciled } from '#src/domain/events/payment.ts';
import { needsAction } from '#src/domain/payment/ledger.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import { openPaymentRows, type PaymentRow } from '#src/usecases/payments/list-payments.ts';
import { ledgerReader } from '#src/usecases/payments/read-ledger.ts';
import { balanceOf } from '#src/usecases/payments/sum-payments.ts';
import { type Reconciled, reconcileOnce } from '#src/usecases/reconciliation/reconcile-chain.ts';
import { readConfig } from '../config.ts';
import { CannotRun, EXIT } from './exit.ts';
import { withLog } from './operator.ts';
import { textOf } from './options.ts';
import { numbered, print, printer, printJson, recordTable, row } from './terminal.ts';

type Options = { readonly from?: number; readonly json?: true };

const HELP = `
Compares all transfers of X402_ASSET to X402_PAY_TO with the payments of the event log, as a service does every
X402_RECONCILE_SECONDS: from the last block that was compared up to the safe one of X402_RPC_URL (or X402_CONFIRMATIONS
before the last). What the chain proves is recorded. May run beside services.
  settled       the chain has the transfer, and the books did not have the charge
  missing       the books have a charge, and the chain has no transfer of it
  corrected     the books had the charge with another transaction than the chain has it: the real one is recorded
  rejected      its authorization ended without moving money: its idempotency key is free
  unattributed  a transfer to the payee that pays for no payment
  differs       the balance of the payee has changed by another sum than the node's transfers: the node left some out
--from compares again from this block on, or from the beginning of its round.
Exit status: 0 nothing is open, 3 something is: payments, transfers without a payment in the blocks compared now, or sums that
do not balance, with each other or with the chain; 2 it could not run.`;

export function addReconcile(payments: Command): void {
  payments
    .command('reconcile')
    .description('Compare the books with the chain once.')
    .option('--from <block>', 'compare again from this block on', readBlock)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(reconcile);
}

const readNumber = textOf(/^\d{1,15}$/, 'It must be the number of a block.');
const readBlock = (text: string): number => Number(readNumber(text));

async function reconcile({ from, json }: Options): Promise<void> {
  const { x402 } = readConfig();
  if (x402 === null) throw new CannotRun('X402_ENABLED is not true: use the environment of the service');
  const { comparedChain } = await import('#src/app/chain.ts');
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  await withLog(async (deps) => {
    const { account, ...chain } = comparedChain(x402, deps.logger);
    const progress = printer(true);
    const onRound = ({ toBlock }: ChainReconciled) => progress(`compared up to block ${toBlock}`);
    const options = { account, from: from ?? null, signal: stop.signal, onRound };
    const read = ledgerReader(deps.log);
    const reconciled = await reconcileOnce({ ...deps, ...chain, ledger: read }, options).catch(cannotRun);
    const ledger = await read();
    const open = openPaymentRows(ledger, Date.now()).filter(isDue);
    const isBalanced = balanceOf(ledger).every(({ balanced }) => balanced);
    const { difference } = reconciled;
    const isOpen = open.length > 0 || unattributedOf(reconciled).length > 0 || difference !== null;
    if (isOpen || !isBalanced) process.exitCode = EXIT.open;
    if (json) printJson({ ...account, ...summaryOf(reconciled), open, balanced: isBalanced });
    else print(...linesOf(reconciled, open, isBalanced));
  });
}

/** What was charged a moment ago is about to be served. */
const isDue = ({ state, since }: PaymentRow): boolean => needsAction(state, since, Date.now());

function cannotRun(error: unknown): never {
  if (!(error instanceof ChainUnavailable)) throw error;
  throw new CannotRun(
    PROBLEMS[error.code] ?? `X402_RPC_URL gives no usable answer (${error.code}): try again`,
  );
}

const PROBLEMS: Readonly<Record<string, string>> = {
  other_chain: 'X402_RPC_URL serves another chain than X402_NETWORK',
  no_safe_block: 'the node of X402_RPC_URL has no safe block: set X402_CONFIRMATIONS to a number of blocks',
  stopped: 'stopped; what was recorded stays',
};

const unattributedOf = ({ rounds }: Reconciled) => rounds.flatMap(({ unattributed }) => unattributed);

function summaryOf(reconciled: Reconciled) {
  const { rounds, found, upTo, difference } = reconciled;
  return {
    /** null: no block was compared now. */
    fromBlock: rounds[0]?.fromBlock ?? null,
    toBlock: rounds.at(-1)?.toBlock ?? null,
    safeBlock: upTo.number,
    received: String(rounds.reduce((sum, { received }) => sum + BigInt(received), 0n)),
    transfers: rounds.reduce((sum, { transfers }) => sum + transfers, 0),
    ...found,
    unattributed: unattributedOf(reconciled),
    /** null: the payee's balance agrees with the transfers. */
    difference: difference && { ...difference, units: String(difference.units) },
  };
}

type Difference = NonNullable<ReturnType<typeof summaryOf>['difference']>;

const differs = ({ units, fromBlock, toBlock }: Difference): string =>
  `the balance of X402_PAY_TO and the transfers differ by ${units} units in the blocks ${fromBlock} to ${toBlock}: these blocks do not count; try another node`;

const OPEN = ['state', 'since', 'amount', 'payer', 'job', 'id'] as const;
const STRANGERS = ['unattributed', 'block', 'sender', 'transaction'] as const;

function linesOf(reconciled: Reconciled, open: readonly PaymentRow[], isBalanced: boolean): string[] {
  const { fromBlock, toBlock, safeBlock, received, transfers, difference, ...found } = summaryOf(reconciled);
  const blocks =
    fromBlock === null ? `none: block ${safeBlock} was compared before` : `${fromBlock} to ${toBlock}`;
  const lines = [
    row('blocks', blocks),
    row('received', `${received} units in ${numbered(transfers, 'transfer')}`),
    row('settled', String(found.settled.length)),
    row('missing', String(found.missing.length)),
    row('corrected', String(found.corrected.length)),
    row('rejected', String(found.rejected.length)),
    ...(difference === null ? [] : [row('differs', differs(difference))]),
    row('balanced', isBalanced ? 'yes' : 'no: run relay payments --balance, then relay audit'),
  ];
  const strangers = found.unattributed.map(({ amount: unattributed, sender, transfers: count, ...rest }) => ({
    ...rest,
    unattributed,
    sender: sender ?? `${count} more transfers`,
  }));
  if (strangers.length > 0) lines.push('', ...recordTable(STRANGERS, strangers));
  const rows = open.map(({ jobId: job, ...payment }) => ({ ...payment, job }));
  if (rows.length > 0) lines.push('', ...recordTable(OPEN, rows));
  return lines;
}
