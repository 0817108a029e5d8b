// What the node says of the chain and of the asset's contract. Nothing about an asset is assumed: the decimals make the
// price, and a signature over another EIP-712 domain would pay nothing.
import {
  ContractFunctionExecutionError,
  domainSeparator,
  type PublicClient,
  parseAbi,
  zeroAddress,
  zeroHash,
} from 'viem';
import { isOfNode, isOutage, isReverted } from './node-errors.ts';
import { type Asset, type AssetFacts, type SigningDomain, UnusableTerms } from './requirements.ts';

const ABI = parseAbi([
  'function decimals() view returns (uint8)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
]);

/** ERC-5267: a domain of name, version, chain id and contract, and nothing else. */
const FIELDS = '0x0f';
/** Of contracts that do not state theirs. */
const USUAL_VERSIONS = ['1', '2'];

/**
 * Throws `UnusableTerms` if the node serves another chain, or if the contract there takes no EIP-3009 authorizations over a
 * domain that can be determined. Any other error: the node gave no usable answer.
 */
export async function readAsset(client: PublicClient, asset: Asset): Promise<AssetFacts> {
  const { chainId, address, known } = asset;
  const served = await client.getChainId();
  if (served !== chainId)
    throw new UnusableTerms('rpcUrl', `serves chain ${served}, and X402_NETWORK is eip155:${chainId}`);
  const contract = { address, abi: ABI } as const;
  const [state, decimals, name, version, separator, described] = await Promise.all([
    nullIfMissing(
      client.readContract({
        ...contract,
        functionName: 'authorizationState',
        args: [zeroAddress, zeroHash],
      }),
    ),
    nullIfMissing(client.readContract({ ...contract, functionName: 'decimals' })),
    nullIfRefused(client.readContract({ ...contract, functionName: 'name' })),
    nullIfRefused(client.readContract({ ...contract, functionName: 'version' })),
    nullIfRefused(client.readContract({ ...contract, functionName: 'DOMAIN_SEPARATOR' })),
    nullIfRefused(client.readContract({ ...contract, functionName: 'eip712Domain' })),
  ]);
  if (state === null || decimals === null)
    throw new UnusableTerms('asset', `is ${address}, which takes no EIP-3009 authorizations on this network`);
  const stated: SigningDomain[] = [];
  if (described?.[0] === FIELDS) stated.push({ name: described[1], version: described[2] });
  if (name !== null && version !== null) stated.push({ name, version });
  if (known !== null) stated.push(known.domain);
  const usual = name === null ? [] : USUAL_VERSIONS.map((of) => ({ name, version: of }));
  const isSigned = (domain: SigningDomain) =>
    domainSeparator({ domain: { ...domain, chainId, verifyingContract: address } }) === separator;
  const domain = separator === null ? stated[0] : [...stated, ...usual].find(isSigned);
  if (domain === undefined)
    throw new UnusableTerms('asset', `is ${address}, whose EIP-712 domain cannot be determined`);
  return { decimals, domain };
}

/** Of what a contract must have. null: it has no such function, or does not return what it must. */
const nullIfMissing = <T>(call: Promise<T>): Promise<T | null> =>
  call.catch((error: unknown) => {
    if (isReverted(error) || isMalformed(error)) return null;
    throw error;
  });

/** Of what a contract may have. null: any answer but a value. The others identify the domain, or do not. */
const nullIfRefused = <T>(call: Promise<T>): Promise<T | null> =>
  call.catch((error: unknown) => {
    if (isOutage(error)) throw error;
    return null;
  });

/** The node returned something that is not of the function's type, such as nothing at all. */
const isMalformed = (error: unknown): boolean =>
  error instanceof ContractFunctionExecutionError && !isOfNode(error);
