// What the chain says of an authorization: unused, paid to us, cancelled, or spent on someone else.
// It only reads. What follows for a payment, the domain decides.
import { createPublicClient, http, type PublicClient } from 'viem';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Authorization } from '#src/ports/payments.ts';
import { findEnd, transferAfter } from './chain-search.ts';
import type { Terms } from './terms.ts';

export type Chain = {
  /** Bounded in time, never throws. */
  lookUp(payment: Authorization): Promise<ChainFinding>;
  /** Whether the configured chain is the one we are paid on; null where it does not say. Never throws. */
  isOurs(): Promise<boolean | null>;
};

/** For the whole look-up. */
const BUDGET_MS = 8000;
const CALL_MS = 4000;

const AUTHORIZATION_STATE = [
  {
    type: 'function',
    name: 'authorizationState',
    stateMutability: 'view',
    inputs: [
      { name: 'authorizer', type: 'address' },
      { name: 'nonce', type: 'bytes32' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const;

/** Why a look-up gave nothing: a word for the log. Messages of the library name the URL, which may hold a key. */
class NoAnswer extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

export function chainBy(deps: {
  readonly terms: Terms;
  readonly rpcUrl: string;
  readonly clock: Clock;
  readonly logger: Logger;
}): Chain {
  const { terms, rpcUrl, clock, logger } = deps;
  const client = createPublicClient({
    transport: http(rpcUrl, { timeout: CALL_MS, retryCount: 1, retryDelay: 100 }),
  });

  async function look(payment: Authorization, goesOn: () => boolean): Promise<ChainFinding> {
    const [chainId, latest] = await Promise.all([
      client.getChainId(),
      client.getBlock({ blockTag: 'latest' }),
    ]);
    if (chainId !== terms.chainId) throw new NoAnswer('other_chain');
    const used = await client.readContract({
      address: terms.asset,
      abi: AUTHORIZATION_STATE,
      functionName: 'authorizationState',
      args: [payment.payer as `0x${string}`, payment.nonce as `0x${string}`],
      blockNumber: latest.number,
    });
    if (!used) return { outcome: 'unused', chainTimeSeconds: Number(latest.timestamp) };
    return whatEndedIt(client, { terms, payment, latest, goesOn });
  }

  return {
    async lookUp(payment) {
      const until = clock.monotonic() + BUDGET_MS;
      const ended = new AbortController();
      const outOfTime = clock.sleep(BUDGET_MS, ended.signal).then((): never => {
        throw new NoAnswer('timeout');
      });
      try {
        return await Promise.race([look(payment, () => clock.monotonic() < until), outOfTime]);
      } catch (error) {
        logger.warn('the chain gave no usable answer about a payment', { code: codeOf(error) });
        return { outcome: 'unavailable' };
      } finally {
        outOfTime.catch(() => {});
        ended.abort();
      }
    },
    async isOurs() {
      try {
        return (await client.getChainId()) === terms.chainId;
      } catch {
        return null;
      }
    },
  };
}

type Ended = {
  readonly terms: Terms;
  readonly payment: Authorization;
  readonly latest: { readonly number: bigint; readonly timestamp: bigint };
  readonly goesOn: () => boolean;
};

async function whatEndedIt(client: PublicClient, ended: Ended): Promise<ChainFinding> {
  const { terms, payment, latest, goesOn } = ended;
  const { payer, nonce, validBefore, payTo, amount } = payment;
  const search = { asset: terms.asset, payer, nonce, validBefore, latest, goesOn };
  const end = await findEnd(client, search);
  if (end === null) throw new NoAnswer('log_not_found');
  if (end.kind === 'cancelled') return { outcome: 'cancelled' };
  const transfer = await transferAfter(client, search, end);
  if (transfer === null) throw new NoAnswer('transfer_not_found');
  const toUs = transfer.to === payTo && transfer.value === BigInt(amount);
  return toUs ? { outcome: 'paid', transaction: end.transaction } : { outcome: 'spent_elsewhere' };
}

const codeOf = (error: unknown): string => (error instanceof NoAnswer ? error.code : 'rpc_failed');
