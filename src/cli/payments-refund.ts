// relay payments refund: begin, cancel, complete.
import {
  type BegunRefund,
  beginPaymentRefund,
  type Cancelled,
  cancelPaymentRefund,
} from '#src/usecases/payments/begin-refund.ts';
import {
  type Completed,
  type CompletedRefund,
  completeRefunds,
  type UncoveredRefund,
} from '#src/usecases/payments/complete-refund.ts';
import { readVariable } from '../config.ts';
import { CannotRun, FoundWrong } from './exit.ts';
import { withChain, withLog } from './operator.ts';
import { csvTable, numbered, plain, print, printError, printJson, recordTable } from './terminal.ts';

type BeginOptions = {
  readonly served?: true;
  readonly byHand?: true;
  readonly reason?: string;
  readonly csv?: true;
  readonly json?: true;
};

/** What is due to one payer. `payee`: the money has to come from it, or from X402_REFUND_FROM. */
type Due = {
  readonly payer: string;
  readonly amount: string;
  readonly network: string;
  readonly asset: string;
  readonly payee: string;
  readonly payments: readonly string[];
};

/** Payments that are looked up on the chain at once. */
const LOOK_UPS = 4;

/** Returns false if any payment is refused. */
export async function begin(ids: readonly string[], options: BeginOptions): Promise<boolean> {
  if (options.csv && options.json) throw new CannotRun('use either --csv or --json');
  if ((options.byHand === undefined) !== (options.reason === undefined))
    throw new CannotRun('--by-hand needs --reason, which is recorded, and --reason needs --by-hand');
  const request = { includeServed: options.served === true, statement: options.reason ?? null };
  const begun = await withChain(async (deps) => {
    const all: BegunRefund[] = [];
    for (let from = 0; from < ids.length; from += LOOK_UPS)
      all.push(
        ...(await Promise.all(
          ids.slice(from, from + LOOK_UPS).map((id) => beginPaymentRefund(deps, id, request)),
        )),
      );
    return all;
  });
  printDue(duePayers(begun), options);
  for (const each of begun) {
    if (each.outcome === 'refused') printError(BEGIN_REFUSED[each.reason](each.id));
    if (each.outcome === 'claimed') printError(claimedText(each));
  }
  return begun.every(({ outcome }) => outcome === 'begun');
}

function duePayers(begun: readonly BegunRefund[]): readonly Due[] {
  const payers = new Map<string, Due>();
  for (const each of begun) {
    if (each.outcome !== 'begun') continue;
    const { payer, network, asset, amount, payTo: payee } = each.payment;
    const key = `${network} ${asset} ${payee} ${payer}`.toLowerCase();
    const due = payers.get(key) ?? { payer, amount: '0', network, asset, payee, payments: [] };
    const sum = String(BigInt(due.amount) + BigInt(amount));
    payers.set(key, { ...due, amount: sum, payments: [...due.payments, each.id] });
  }
  return [...payers.values()];
}

const DUE_FIELDS = ['payer', 'amount', 'network', 'asset', 'payee', 'payments'] as const;

function printDue(due: readonly Due[], { csv, json }: BeginOptions): void {
  const rows = due.map((one) => ({ ...one, payments: one.payments.length }));
  if (json) printJson(due);
  else if (csv) print(...csvTable(DUE_FIELDS, rows));
  else if (due.length > 0) print(...recordTable(DUE_FIELDS, rows));
}

const BEGIN_REFUSED: Readonly<
  Record<Extract<BegunRefund, { outcome: 'refused' }>['reason'], (id: string) => string>
> = {
  not_found: (id) => `${id} is not in the log`,
  unconfirmed: (id) =>
    `${id} is unconfirmed: run "relay payments resolve ${id}", which looks it up on the chain`,
  not_charged: (id) =>
    `${id} was not charged: there is nothing to refund ("relay payments resolve ${id}" looks it up again)`,
  missing: (id) => `${id} is charged in the books, and the chain has no transfer of it: no money came in`,
  not_on_chain: (id) =>
    `the chain shows no transfer of ${id}: no money came in, or it is not mined yet; nothing is sent back for it (cancel its refund if it has begun)`,
  not_final: (id) =>
    `the transfer of ${id} is not confirmed, and a reorganisation of the chain may remove it: run this again in some minutes`,
  chain_unavailable: (id) =>
    `the node at X402_RPC_URL gives no usable answer about ${id}: try again, or use another node (one without a safe block needs X402_CONFIRMATIONS), or --by-hand (see --help)`,
  self_paid: (id) => `${id} was paid by its own payee: no money came in (cancel its refund if it has begun)`,
  job_running: (id) => `the call of ${id} is running: run this again when it has ended`,
  served: (id) => `the call of ${id} was made: use --served to return the charge nevertheless`,
  already_refunded: (id) => `${id} is refunded`,
  cancelled: (id) => `the refund of ${id} was cancelled at the same moment`,
};

/** Returns false if any refund is not cancelled. */
export async function cancel(ids: readonly string[], { json }: { readonly json?: true }): Promise<boolean> {
  const results = await withLog(async (deps) => {
    const all: Cancelled[] = [];
    for (const id of ids) all.push(await cancelPaymentRefund(deps, id));
    return all;
  });
  const cancelled = results.filter(({ outcome }) => outcome === 'cancelled').map(({ id }) => id);
  if (json) printJson({ cancelled });
  else
    for (const id of cancelled)
      print(`${id}: the refund is cancelled; if its call never started, its payment header executes it`);
  for (const result of results) if (result.outcome !== 'cancelled') printError(notCancelled(result));
  return cancelled.length === results.length;
}

function notCancelled(result: Exclude<Cancelled, { outcome: 'cancelled' }>): string {
  const { id } = result;
  if (result.outcome === 'claimed') return claimedText(result);
  return result.reason === 'already_refunded' ? `${id} is refunded` : `no refund of ${id} has begun`;
}

const claimedText = ({ id, transaction }: Extract<BegunRefund, { outcome: 'claimed' }>): string =>
  `${transaction} is claimed for the refund of ${id}: run "relay payments refund complete --tx ${transaction}"`;

type CompleteOptions = { readonly tx: string; readonly json?: true };

/** Returns false if nothing is recorded. */
export async function complete({ tx: transaction, json }: CompleteOptions): Promise<boolean> {
  const refundFrom = readVariable('X402_REFUND_FROM')?.toLowerCase() ?? null;
  const completed = await withChain(({ findTransfers, ...deps }) =>
    completeRefunds(deps, { transaction, refundFrom, findTransfers }),
  );
  if (completed.outcome !== 'completed') throw notFound(completed, transaction);
  const { network, refunds, uncovered } = completed;
  if (json) printJson({ transaction, network, refunds: refunds.map(refundJson), uncovered });
  else if (refunds.length > 0) print(...refunds.map(refundLine));
  for (const each of uncovered) printError(uncoveredText(each, transaction));
  if (refunds.length === 0 && uncovered.length === 0)
    printError(
      `${transaction} moves nothing to a payer whose refund has begun on ${network}: run "relay payments refund begin" first`,
    );
  return refunds.some(({ recorded }) => recorded) || (refunds.length > 0 && uncovered.length === 0);
}

const refundJson = ({ payment: id, payer, asset, amount, sender, recorded }: CompletedRefund) => ({
  id,
  payer,
  asset,
  amount,
  sender,
  recorded,
});

const refundLine = ({ payment, payer, amount, recorded }: CompletedRefund): string =>
  plain(
    `${payment}: ${amount} units to ${payer} ${recorded ? 'recorded as refunded' : 'were recorded before'}`,
  );

function notFound(completed: Exclude<Completed, { outcome: 'completed' }>, transaction: string): Error {
  switch (completed.outcome) {
    case 'missing':
      return new FoundWrong(`no block of ${completed.network} contains ${transaction}`);
    case 'failed':
      return new FoundWrong(`the transaction ${transaction} failed: nothing was transferred`);
    case 'unconfirmed':
      return new FoundWrong(
        `${transaction} is not confirmed: wait ${numbered(completed.blocks, 'block')} and run this again; nothing is recorded`,
      );
    case 'no_safe_block':
      return new CannotRun(
        'the node at X402_RPC_URL has no safe block: set X402_CONFIRMATIONS to a number of blocks; nothing is recorded',
      );
    case 'unavailable':
      return new CannotRun('the node at X402_RPC_URL gives no usable answer: try again; nothing is recorded');
    default:
      return completed satisfies never;
  }
}

function uncoveredText(
  { id, payer, amount, reason, claimedBy }: UncoveredRefund,
  transaction: string,
): string {
  switch (reason) {
    case 'claimed_by_other':
      return `${claimedBy} is claimed for ${id}: run "relay payments refund complete --tx ${claimedBy}"`;
    case 'not_confirmed':
      return `the call of ${id} runs or was made, and its "refund begin" ended before it saw this: run "relay payments refund begin ${id}" again, which says whether it may be refunded`;
    case 'charge_transaction':
      return `${transaction} is the charge of ${id}, not its refund`;
    case 'transfer_before_charge':
      return `${transaction} is older than ${id}`;
    case 'wrong_asset':
      return `${transaction} moves another token to ${payer} than ${id} was paid in`;
    case 'wrong_sender':
      return `${transaction} does not move money from the payee or X402_REFUND_FROM to ${payer}: it does not refund ${id}`;
    case 'transfer_too_small':
      return `${transaction} moves less than ${amount} units to ${payer}: it does not refund ${id}`;
    case 'transfer_used':
      return `what ${transaction} moves to ${payer} refunds other payments: nothing is left for ${id}`;
    default:
      return reason satisfies never;
  }
}
