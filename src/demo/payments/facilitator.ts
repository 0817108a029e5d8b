// The stock x402 facilitator (@x402/core, @x402/evm) over HTTP, for both versions of the protocol.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { x402Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, http, publicActions } from 'viem';
import { devAccount, inNonceOrder, mined, viemChain } from './chain.ts';

export type LocalFacilitator = {
  /** As X402_FACILITATOR_URL takes it. */
  readonly url: string;
  stop(): Promise<void>;
};

type FacilitatorRequest = {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
};

export type FacilitatorOptions = {
  /** Of the chain on which it settles; it pays the gas from its own account. */
  readonly rpcUrl: string;
  /** How long it waits for a transaction to be mined before it answers `settlement_pending`; 3 minutes if unset. */
  readonly waitMs?: number;
};

export async function startLocalFacilitator(options: FacilitatorOptions): Promise<LocalFacilitator> {
  const facilitator = makeFacilitator(options);
  const answer = async (request: IncomingMessage): Promise<unknown> => {
    if (request.url === '/supported') return facilitator.getSupported();
    const { paymentPayload, paymentRequirements } = (await json(request)) as FacilitatorRequest;
    if (request.url === '/verify') return facilitator.verify(paymentPayload, paymentRequirements);
    if (request.url === '/settle') return facilitator.settle(paymentPayload, paymentRequirements);
    throw new Error('unknown path');
  };
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request).then(
      (result) => [200, result] as const,
      (error: unknown) => [500, { error: String(error) }] as const,
    );
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function makeFacilitator({ rpcUrl, waitMs }: FacilitatorOptions): x402Facilitator {
  const account = devAccount(0);
  const client = createWalletClient({
    account,
    chain: viemChain(rpcUrl),
    transport: http(rpcUrl),
  }).extend(publicActions);
  const { address } = account;
  const withNonce = inNonceOrder(() => client.getTransactionCount({ address, blockTag: 'pending' }));
  const signer = toFacilitatorEvmSigner({
    address,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    // The library's type of the signed data is wider than viem's.
    verifyTypedData: (args) => client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    async writeContract(args) {
      // Estimated before the nonce is assigned, because most failures occur here.
      const gas = args.gas ?? (await client.estimateContractGas({ ...args, account }));
      return withNonce((nonce) => client.writeContract({ ...args, gas, nonce }));
    },
    sendTransaction: (args) => withNonce((nonce) => client.sendTransaction({ ...args, nonce })),
    waitForTransactionReceipt: ({ hash }) => mined(client, hash, waitMs),
    getCode: (args) => client.getCode(args),
  });
  return registerExactEvmScheme(new x402Facilitator(), { signer, networks: 'eip155:8453' });
}
