// Whether a contract wallet accepts a signature (ERC-1271), asked of the wallet: no facilitator verifies an authorization that
// is not valid yet. A wallet that is not deployed cannot be asked, whatever its signature brings to deploy it (ERC-6492).
import {
  BaseError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  ExecutionRevertedError,
  isErc6492Signature,
  parseAbi,
  parseErc6492Signature,
} from 'viem';
import type { PaymentReason } from '#src/domain/payment/reasons.ts';
import type { Payments, Verified } from '#src/ports/payments.ts';
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
      const own = ownSignature(signature);
      if (digest === null || own === null) return INVALID;
      const { from: address } = authorization;
      try {
        return await queryNode(rpcUrl, { ms: QUERY_MS }, async (client) => {
          const [, isAccepted] = await Promise.all([
            demandNetwork(client, terms.network),
            accepts(client, address, [digest, own]),
          ]);
          if (isAccepted) return { outcome: 'valid' };
          if (!isErc6492Signature(signature)) return INVALID;
          const code = await client.getCode({ address });
          return code === undefined || code === '0x' ? UNDEPLOYED : INVALID;
        });
      } catch {
        return { outcome: 'unavailable' };
      }
    },
  };
}

const invalid = (reason: PaymentReason): Verified => ({ outcome: 'invalid', reason });
const INVALID = invalid('invalid_signature');
const UNDEPLOYED = invalid('wallet_not_deployed');

/** As the wallet gets it: without the call that would deploy it (ERC-6492). null: it cannot be read. */
function ownSignature(signature: Hex): Hex | null {
  try {
    return parseErc6492Signature(signature).signature;
  } catch {
    return null;
  }
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
