// The stock x402 clients, which sign a new authorization on every repeat: `@x402/fetch` (version 2), `x402-fetch` (1).
import assert from 'node:assert/strict';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier';
import { wrapFetchWithPayment as wrapV2, x402Client } from '@x402/fetch';
import { wrapFetchWithPayment as wrapV1 } from 'x402-fetch';
import type { Service } from '#test/support/process/service.ts';
import { EXECUTE, type Sent } from '#test/support/world/paid-call.ts';
import type { Sample } from '#test/support/world/paid-world.ts';

/**
 * A stock client of a payer. `nonces`: of the authorizations that it has signed and sent. `identifier`: its payments of
 * version 2 have this id (extension payment-identifier).
 */
export function stockClient(
  version: 1 | 2,
  { payer, request }: Pick<Sample, 'payer' | 'request'>,
  identifier?: string,
) {
  const nonces: string[] = [];
  const watched = async (input: string | URL | Request, init?: RequestInit) => {
    const sent = input instanceof Request ? new Request(input, init) : new Request(String(input), init);
    const header = sent.headers.get('payment-signature') ?? sent.headers.get('x-payment');
    if (header !== null) {
      nonces.push(JSON.parse(Buffer.from(header, 'base64').toString()).payload.authorization.nonce);
    }
    return fetch(sent);
  };
  const client = registerExactEvmScheme(new x402Client(), { signer: payer });
  if (identifier !== undefined) {
    client.onBeforePaymentCreation(async ({ paymentRequired: { extensions } }) => {
      assert.ok(extensions);
      appendPaymentIdentifierToExtensions(extensions, identifier);
    });
  }
  const paying =
    version === 2 ? wrapV2(watched as typeof fetch, client) : wrapV1(watched as typeof fetch, payer);
  return {
    nonces,
    /** Rejects if the connection fails. */
    async call(service: Pick<Service, 'url'>): Promise<Sent> {
      for (;;) {
        const response = await paying(`${service.url}${EXECUTE}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(request),
        });
        const { status, headers } = response;
        const body = (await response.json()) as Sent['body'];
        if (status === 429 && body.error.code === 'too_many_in_flight') continue;
        const settlement = headers.get(version === 2 ? 'payment-response' : 'x-payment-response');
        const paid = settlement === null ? null : JSON.parse(Buffer.from(settlement, 'base64').toString());
        return { status, headers, body, paid } as Sent;
      }
    },
  };
}
