// relay payments: lists of payments, the balance, refunds, and the resolution of payments whose fate is open.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { exiting } from './exit.ts';
import { readAddress, readDate, textOf } from './options.ts';
import { balance, type ListOptions, listPayments, sum } from './payments-list.ts';
import { addReconcile } from './payments-reconcile.ts';
import { begin, cancel, complete } from './payments-refund.ts';
import { resolve } from './payments-resolve.ts';

const HELP = `
States of a payment:
  unserved     settled, its call never started: the same payment header still executes it, without a new charge
  refundable   settled, and its call was interrupted or never sent: it is not sent again
  refunding    its refund has begun: it buys nothing, and is due until "refund complete" records the transfer
  unknown      whether the money moved is unconfirmed: "resolve" looks it up on the chain
  missing      charged in the books, and the chain has no transfer of it
With --all also: settling, running, served, refunded, rejected, released, and self_paid: by the payee's own wallet, so that no
money came in; it is in no sum. With --all and --missing also the transfers to the payee that pay for no payment: unattributed,
with the sender as payer, and the block in place of the id. --corrected lists charges of any state that the chain has in another
transaction than was recorded first: the real one, and the stated one, which receipts that were signed before contain.
Lists show amounts of known assets in money, else in atomic units. --csv and --json have all fields, with atomic units, as the
sums have. --key reads the key file (SIGNING_KEYS_FILE), whose secret names the streams of keys. A date is its beginning (UTC); --until is exclusive.
In memory are the open payments, the charges not yet compared with the chain, and with --all one page of the others.
Reads the log of DATA_DIR, or of EVENTSTORE_URL, also while a service runs on it.
Exit status, whatever is printed: 0 nothing is left to do; 3 a refund is due, a payment is unknown or missing, or the
chain disagrees; 1 (--balance) the sums of the books contradict each other; 2 it could not run.`;

const REFUND_HELP = `
A refund has two steps, so that no payer gets both the money and the call:
  1. "refund begin" takes the payments out of use and prints what to send to each payer.
  2. Send the money, to all payers in one transaction or in several.
  3. "refund complete" finds the transfers on the chain (X402_RPC_URL) and records the refunds.
"refund cancel" takes the first step back, before any money is sent.`;

const BEGIN_HELP = `
From then on the payment header is refused. Prints one row for each payer; --csv for a batch transfer. The money has to come
from the payee of the payment (X402_PAY_TO) or from X402_REFUND_FROM, a wallet that sends for this operator alone: with an
exchange's hot wallet, a payer's own withdrawal would count as its refund. Payments whose refund has begun before are printed
again. Each payment is looked up on the chain (X402_RPC_URL) first: money goes back only if the transfer is there. If the node
gives no usable answer, --by-hand --reason TEXT begins nevertheless, and records the reason as the operator's statement.
Refused: a payment that is not charged, is refunded, is missing or not on the chain, was paid by its payee, whose call is
running, or whose call was made (--served returns the charge nevertheless).
Exit status: 1 if a payment was refused, and the others have begun; 2 it could not run.`;

const COMPLETE_HELP = `
Every transfer in the transaction counts that is in the token of the charge, comes from the payee or X402_REFUND_FROM, and is
not older than the payment. It refunds the begun refunds of its recipient, each in full, the oldest first, as far as it
covers them; whatever runs at the same moment, no part of it counts twice. What is left can be completed later for refunds
that have begun by then. If the command was interrupted, run it again.
Nothing is recorded before the block of the transaction counts: the node's safe one does, or X402_CONFIRMATIONS follow it.
Exit status: 0 recorded (now or before), 1 nothing is covered, or nothing is left for refunds that began later, or the
transaction is not confirmed, 2 the chain does not answer.`;

const RESOLVE_HELP = `
The chain is queried (X402_RPC_URL), and what it shows is recorded: paid, never to be paid, or nothing yet. Also a rejected
payment can be resolved, if the chain shows that it was paid.
By hand only if the chain gives no usable answer: --by-hand --reason TEXT with --settled TX or --not-settled is recorded as
the operator's statement, with the reason. --settled is refused if the node has the transaction without the transfer of this
payment; --not-settled until one minute after the authorization has expired.
Exit status: 0 recorded or confirmed, 1 not recorded, 2 the chain gives no usable answer.`;

export function addPayments(program: Command): void {
  const payments = program
    .command('payments')
    .description('List payments that need attention, or all.')
    .option('--all', 'every payment, in the order of reservation')
    .option('--unserved', 'only settled and not started')
    .option('--refundable', 'only those whose refund is due: unserved, refundable, refunding')
    .option('--unknown', 'only unconfirmed')
    .option('--missing', 'only charges that the chain does not have')
    .option('--corrected', 'only charges that the chain has in another transaction than was recorded')
    .option('--payer <address>', 'only those of this payer, of any state', readAddress)
    .option(
      '--transaction <hash>',
      'only those charged or refunded by this transaction, of any state',
      readTransaction,
    )
    .option('--key <text>', 'only those that hold or held this idempotency key, of any state')
    .option('--job <id>', 'only that of this job, of any state')
    .option('--since <date>', 'charged (or else reserved) at this time or later, RFC 3339', readDate)
    .option('--until <date>', 'before this time', readDate)
    .addOption(new Option('--sum <period>', 'print sums instead, by period').choices(['day', 'month']))
    .option(
      '--balance',
      'print charged = served + refunded + open, and received = charged - missing + unattributed, instead',
    )
    .option('--csv', 'print CSV, amounts in atomic units')
    .option('--json', 'print an array of JSON, amounts in atomic units')
    .enablePositionalOptions()
    .addHelpText('after', HELP)
    .action(exiting(show));
  payments
    .command('resolve')
    .description('Look an unconfirmed payment up on the chain, and record what it shows.')
    .argument('<id>', 'as the list shows it: payment-…', readId)
    .option('--by-hand', 'record a statement, if the chain gives no usable answer')
    .option('--reason <text>', 'with --by-hand: why you are certain', readReason)
    .option('--settled <transaction>', 'with --by-hand: it was paid by this transaction', readTransaction)
    .option('--not-settled', 'with --by-hand: it was not paid, and no longer can be')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', RESOLVE_HELP)
    .action(exiting(resolve));
  const refund = payments
    .command('refund')
    .description('Return charges to their payers.')
    .addHelpText('after', REFUND_HELP);
  refund
    .command('begin')
    .description('Take payments out of use and print what to send to each payer.')
    .argument('<id...>', 'as the list shows them: payment-…', readIds)
    .option('--served', 'also payments whose call was made')
    .option('--by-hand', 'record a statement, if the chain gives no usable answer')
    .option('--reason <text>', 'with --by-hand: why you are certain of the charge', readReason)
    .option('--csv', 'print CSV')
    .option('--json', 'print an array of JSON')
    .addHelpText('after', BEGIN_HELP)
    .action(exiting(begin));
  refund
    .command('cancel')
    .description('Take the begin of refunds back: the payments buy their calls again.')
    .argument('<id...>', 'as the list shows them: payment-…', readIds)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nRefused if a transaction is claimed for it: complete that one.')
    .action(exiting(cancel));
  refund
    .command('complete')
    .description('Record the refunds that a transaction pays.')
    .requiredOption('--tx <hash>', 'the transaction: 0x and 64 hex digits', readTransaction)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', COMPLETE_HELP)
    .action(exiting(complete));
  addReconcile(payments);
}

type ShowOptions = ListOptions & {
  readonly sum?: 'day' | 'month';
  readonly balance?: true;
};

const show = ({ sum: period, balance: balanced, ...options }: ShowOptions) =>
  balanced ? balance(options) : period === undefined ? listPayments(options) : sum(period, options);

const readId = textOf(/^payment-[0-9a-f]{64}$/, 'It must be payment- and 64 hex digits.');

/** Without repetitions. */
const readIds = (text: string, before: readonly string[] = []): readonly string[] => [
  ...new Set([...before, readId(text)]),
];

const readHash = textOf(/^0x[0-9a-fA-F]{64}$/, 'It must be 0x and 64 hex digits.');
const readTransaction = (text: string): string => readHash(text).toLowerCase();

const REASON_CHARACTERS = 500;

function readReason(text: string): string {
  const reason = text.trim();
  if (reason === '' || reason.length > REASON_CHARACTERS || /[\p{Cc}\p{Cs}]/u.test(reason))
    throw new InvalidArgumentError(
      `It must be 1 to ${REASON_CHARACTERS} characters without control characters.`,
    );
  return reason;
}
