// Whether a contract wallet accepts a signature (ERC-1271), asked of the wallet: no facilitator verifies an authorization that
// is not valid yet.
import {
  BaseError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  ExecutionRevertedError,
  parseAbi,
} from 'viem';
import type { Payments } from '#src/ports/payments.ts';
import { carriedOf, transferDigest } from './authorization.ts';
import { demandNetwork, type NodeClient, queryNode } from './node.ts';
import type { Hex, Terms } from './requirements.ts';

const QUERY_MS = 4000;
const ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
/** What the function returns for a signature that the wallet accepts. */
const ACCEPTED = '0x1626ba7e';

export function walletSignatures(rpcUrl: string, terms: Terms): Pick<Payments, 'verifySignature'> {
  return {
    async verifySignature(payment) {
      const { authorization, signature } = carriedOf(payment).signed;
      const digest = transferDigest(terms, authorization);
      try {
        const accepted = await queryNode(rpcUrl, { ms: QUERY_MS }, async (client) => {
          const [, isAccepted] = await Promise.all([
            demandNetwork(client, terms.network),
            digest !== null && accepts(client, authorization.from, [digest, signature]),
          ]);
          return isAccepted;
        });
        return accepted ? { outcome: 'valid' } : { outcome: 'invalid', reason: 'invalid_signature' };
      } catch {
        return { outcome: 'unavailable' };
      }
    },
  };
}

/** false also if there is no contract, or one without this function. Throws if the node does not answer. */
async function accepts(client: NodeClient, address: Hex, args: readonly [Hex, Hex]): Promise<boolean> {
  const call = { address, abi: ABI, functionName: 'isValidSignature', args } as const;
  try {
    return (await client.readContract(call)) === ACCEPTED;
  } catch (error) {
    if (error instanceof BaseError && error.walk(isRefusal) !== null) return false;
    throw error;
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof ContractFunctionRevertedError ||
  error instanceof ContractFunctionZeroDataError ||
  error instanceof ExecutionRevertedError;
