// relay payments resolve: what became of a payment whose fate is open.
import type { OperatorStatement } from '#src/domain/payment/resolve.ts';
import { iso } from '#src/lib/iso.ts';
import { type Resolved, resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { CannotRun, FoundWrong } from './exit.ts';
import { withChain } from './operator.ts';
import { print, printJson } from './terminal.ts';

type ResolveOptions = {
  readonly byHand?: true;
  readonly reason?: string;
  readonly settled?: string;
  readonly notSettled?: true;
  readonly json?: true;
};

export async function resolve(id: string, options: ResolveOptions): Promise<void> {
  const statement = statementOf(options);
  const resolved = await withChain(({ lookUp, isSettledBy, ...deps }) =>
    resolvePayment({ ...deps, chain: { lookUp, isSettledBy } }, { id, statement }),
  );
  const { text, next } = answerOf(id, resolved);
  if (!options.json) return print(text, ...(next === null ? [] : [next]));
  if (resolved.kind !== 'recorded')
    return printJson({ id, kind: 'confirmed', status: resolved.status, next });
  const { type, data } = resolved.event;
  const { jobId, evidence } = data;
  const transaction = type === 'PaymentSettled' ? data.transaction : null;
  const kind = type === 'PaymentSettled' ? 'settled' : 'not_settled';
  printJson({ id, kind, jobId, transaction, evidence, next });
}

/** null: what the chain shows. */
function statementOf({ byHand, reason, settled, notSettled }: ResolveOptions): OperatorStatement | null {
  const named = settled !== undefined || notSettled !== undefined || reason !== undefined;
  if (!byHand) {
    if (named) throw new CannotRun('--settled, --not-settled and --reason need --by-hand (see --help)');
    return null;
  }
  if ((settled === undefined) === (notSettled === undefined))
    throw new CannotRun('use either --settled or --not-settled with --by-hand');
  if (reason === undefined) throw new CannotRun('--by-hand needs --reason, which is recorded');
  const verdict =
    settled === undefined
      ? ({ kind: 'not_settled' } as const)
      : ({ kind: 'settled', transaction: settled } as const);
  return { verdict, reason };
}

/** Throws if nothing is recorded or confirmed. */
function answerOf(id: string, resolved: Resolved): { readonly text: string; readonly next: string | null } {
  switch (resolved.kind) {
    case 'recorded': {
      const { type, data } = resolved.event;
      const source = data.evidence === 'chain' ? 'by the chain' : 'as your statement';
      const kind = type === 'PaymentSettled' ? 'settled' : 'not settled';
      return {
        text: `${id} is recorded as ${kind}, ${source} (job ${data.jobId}).`,
        next: type === 'PaymentSettled' ? PAID : NOT_PAID,
      };
    }
    case 'confirmed':
      return { text: `${id} is ${resolved.status}, and the chain shows no transfer of it.`, next: null };
    case 'nothing_to_resolve':
      throw new FoundWrong(
        `nothing to resolve: ${id} ${resolved.status === 'absent' ? 'is not in the log' : `is ${resolved.status}`}`,
      );
    case 'too_early': {
      const until = iso(resolved.validBefore * 1000);
      throw new FoundWrong(
        `too early: the authorization of ${id} is unused and can be used until ${until}; run this over a minute after that`,
      );
    }
    case 'chain_unavailable':
      throw new CannotRun(
        'the node at X402_RPC_URL gives no usable answer: try again, or use another node, or --by-hand (see --help)',
      );
    case 'chain_answers':
      throw new FoundWrong(
        `the chain answers (${resolved.finding.replaceAll('_', ' ')}): run this without --by-hand, which records what it shows`,
      );
    case 'other_transaction':
      throw new FoundWrong(`the transaction of --settled does not contain the transfer of ${id}`);
    default:
      return resolved satisfies never;
  }
}

const PAID =
  'The same payment header now executes the call, without a new charge; or return the money by "relay payments refund begin".';
const NOT_PAID = 'No money moved: the buyer may pay again, and its idempotency key is free.';
