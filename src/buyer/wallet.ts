// A buyer's wallet that is one private key.
import { authorizationTypes } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { BuyerWallet } from './payment.ts';

/** New payments are made by the stock client. */
export function keyPayer(privateKey: Hex): BuyerWallet & { readonly address: string } {
  const account = privateKeyToAccount(privateKey);
  const scheme = new ExactEvmScheme(account);
  return {
    address: account.address.toLowerCase(),
    async pay(required, recorded) {
      const [accepted] = required.accepts;
      const { network } = accepted;
      if (recorded === null)
        return (
          x402Client
            // The offer was compared with the buyer's limits.
            .fromConfig({
              schemes: [{ network, client: scheme }],
              spendControls: { maxAmountPerPayment: false },
            })
            .createPaymentPayload(required)
        );
      const { name, version } = accepted.extra;
      const signature = await account.signTypedData({
        domain: { name, version, chainId: chainIdOf(network), verifyingContract: accepted.asset as Hex },
        types: authorizationTypes,
        primaryType: 'TransferWithAuthorization',
        message: {
          from: recorded.from as Hex,
          to: recorded.to as Hex,
          value: BigInt(recorded.value),
          validAfter: BigInt(recorded.validAfter),
          validBefore: BigInt(recorded.validBefore),
          nonce: recorded.nonce as Hex,
        },
      });
      const payload = { authorization: recorded, signature };
      return { x402Version: 2, resource: required.resource, accepted, payload };
    },
  };
}

const chainIdOf = (network: string): number => Number(network.slice(network.indexOf(':') + 1));

/** The wallet's address, with its checksum. */
export const walletAddress = (privateKey: Hex): Hex => privateKeyToAccount(privateKey).address;
