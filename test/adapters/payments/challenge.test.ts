import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PaymentRequiredV1Schema, PaymentRequiredV2Schema } from '@x402/core/schemas';
import { ExactEvmScheme } from '@x402/evm';
import { AuthCaptureEvmScheme } from '@x402/evm/auth-capture/client';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { UptoEvmScheme } from '@x402/evm/upto/client';
import { EVM_NETWORK_CHAIN_ID_MAP } from '@x402/evm/v1';
import {
  extractDiscoveryInfoV1,
  isValidServiceName,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey } from 'viem/accounts';
import { ChainIdToNetwork, PaymentRequirementsSchema } from 'x402/types';
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch';
import type { X402 } from '#src/adapters/payments/x402.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { REASONS_OF_402 } from '#src/domain/payment/reasons.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import {
  ACCEPTED,
  BASE_URL,
  challenged,
  jwsOf,
  KEY_URL,
  lab,
  PAY_TO,
  PUBLIC_KEY,
  USDC,
  wallet,
} from './lab.ts';

const ROUTES = Object.keys(PAID_ROUTES) as Route[];
/** Limit of all headers of a response: Bun, Deno and undici refuse more. */
const CLIENTS_TAKE = 16 * 1024;
/** Of 3500 bytes for the whole head of a 402, without 700 for the other headers and 100 for a longer PUBLIC_BASE_URL. */
const PROXIES_PASS = 3500 - 700 - 100;

test('version 2 in the header: resource, requirements, extensions', async () => {
  const x402 = await lab();
  for (const route of ROUTES) {
    const { required, header } = await challenged(x402, { route, reason: 'insufficient_funds' });
    const { extensions, ...rest } = PaymentRequiredV2Schema.parse(required);
    assert.deepEqual(rest, {
      x402Version: 2,
      error: 'payment_required: insufficient_funds',
      resource: {
        url: BASE_URL + PAID_ROUTES[route].path,
        description: PAID_ROUTES[route].description,
        serviceName: 'webhook-relay',
      },
      accepts: [ACCEPTED],
    });
    assert.deepEqual(Object.keys(extensions ?? {}).sort(), ['bazaar', 'offer-receipt', 'payment-identifier']);
    assert.ok(header.length < PROXIES_PASS, `the header has ${header.length} characters`);
    const { description = '', serviceName } = rest.resource;
    assert.ok(description.length <= 450);
    assert.equal(isValidServiceName(serviceName), true);
  }
});

test('with every reason the header leaves room for the other headers within what proxies pass on', async () => {
  const x402 = await lab();
  for (const route of ROUTES)
    for (const reason of REASONS_OF_402) {
      const { header } = await challenged(x402, { route, reason });
      assert.ok(header.length < PROXIES_PASS, `${reason}: ${header.length} characters`);
    }
});

test('version 1 in the body: only version, error and the requirements', async () => {
  const x402 = await lab();
  for (const route of ROUTES) {
    const { body } = await challenged(x402, { route });
    const parsed = PaymentRequiredV1Schema.strict().parse(body);
    assert.equal(parsed.error, 'payment_required');
    const [accepted] = parsed.accepts;
    const { outputSchema, ...rest } = PaymentRequirementsSchema.parse(accepted);
    assert.deepEqual(rest, {
      scheme: 'exact',
      network: 'base',
      maxAmountRequired: '3000',
      resource: BASE_URL + PAID_ROUTES[route].path,
      description: PAID_ROUTES[route].description,
      mimeType: 'application/json',
      payTo: PAY_TO,
      maxTimeoutSeconds: 120,
      asset: USDC,
      extra: { name: 'USD Coin', version: '2', paymentFlow: 'upfront' },
    });
    const found = extractDiscoveryInfoV1({ ...rest, outputSchema } as never);
    assert.equal(found?.input.type, 'http');
  }
});

test('hints about the request body are in the response body only', async () => {
  const x402 = await lab();
  const hints = [{ path: '/url', message: 'is required' }];
  const { body, required } = await challenged(x402, { hints });
  assert.deepEqual((body as { validation: unknown }).validation, hints);
  assert.equal('validation' in required, false);
  assert.equal('validation' in ((await challenged(x402)).body as object), false);
});

test('why a payment is refused is in the body, for people, and not in the header, which is short', async () => {
  const x402 = await lab();
  const ask = { reason: 'authorization_expired', message: 'the clock is slow' };
  const { body, required } = await challenged(x402, ask);
  assert.deepEqual(
    [(body as { error: unknown }).error, (body as { message: unknown }).message],
    ['payment_required: authorization_expired', 'the clock is slow'],
  );
  assert.equal('message' in required, false);
});

test('a network without a version 1 name is offered in version 2 only', async () => {
  const asset = '0x3333333333333333333333333333333333333333';
  const x402 = await lab({ x402: { network: 'eip155:31337', asset, priceUsd: '1.5' } });
  const { body, required } = await challenged(x402);
  assert.deepEqual((body as { accepts: unknown }).accepts, []);
  const extra = { name: 'USD Coin', version: '2', paymentFlow: 'upfront' };
  assert.deepEqual(required.accepts, [
    { ...ACCEPTED, network: 'eip155:31337', asset, amount: '1500000', extra },
  ]);
});

test('a network without X402_ASSET has its USDC; a network without one is refused', async () => {
  const sepolia = await challenged(await lab({ x402: { network: 'eip155:84532' } }));
  assert.equal(sepolia.required.accepts[0]?.asset, '0x036CbD53842c5426634e7929541eC2318f3dCF7e');
  const named = await challenged(await lab({ x402: { asset: USDC.toLowerCase() } }));
  assert.deepEqual(named.required.accepts, [{ ...ACCEPTED, asset: USDC.toLowerCase() }]);
  await assert.rejects(lab({ x402: { network: 'eip155:31337' } }));
});

test('version 1 names are those of the version 1 package', () => {
  for (const [chainId, name] of Object.entries(ChainIdToNetwork)) {
    if (name.startsWith('solana')) continue;
    assert.equal((EVM_NETWORK_CHAIN_ID_MAP as Record<string, number>)[name], Number(chainId));
  }
});

type Bazaar = {
  readonly info: {
    readonly input: unknown;
    readonly output: unknown;
  };
  readonly schema: {
    readonly properties: {
      readonly input: { readonly properties: { readonly body: unknown } };
      readonly output: { readonly properties: { readonly example: unknown } };
    };
  };
};

/** As a catalogue judges it. */
function judged(extension: unknown): Bazaar {
  assert.deepEqual(validateDiscoveryExtension(extension as never), { valid: true });
  assert.deepEqual(validateDiscoveryExtensionSpec(extension as never), { valid: true });
  const bazaar = extension as Bazaar;
  assert.deepEqual(bazaar.schema.properties.output.properties.example, { type: 'object' });
  assert.doesNotMatch(JSON.stringify(bazaar.schema), /"\$(ref|id)"/);
  return bazaar;
}

test('the discovery extension passes the catalogue’s validation, whole in documents and short in the header', async () => {
  const x402 = await lab();
  for (const route of ROUTES) {
    const { inputSchema, inputExample, outputExample } = PAID_ROUTES[route];
    const input = { type: 'http', method: 'POST', bodyType: 'json', body: inputExample };
    const whole = judged(x402.protocol.askedFor[route].extensions.bazaar);
    assert.deepEqual(whole.info, { input, output: { type: 'json', example: outputExample } });
    assert.deepEqual(
      whole.schema.properties.input.properties.body,
      JSON.parse(JSON.stringify(portableSchema(inputSchema))),
    );
    const short = judged((await challenged(x402, { route })).required.extensions?.bazaar);
    assert.deepEqual(short.info, { input });
    const { required } = inputSchema;
    assert.deepEqual(short.schema.properties.input.properties.body, { type: 'object', required });
  }
});

test('an offer is signed by our key, for the accepted requirements, and valid for five minutes', async () => {
  const clock = manualClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  const x402 = await lab({ clock });
  const { required } = await challenged(x402);
  const signed = extractOffersFromPaymentRequired(required);
  assert.equal(signed.length, 1);
  const [offer] = decodeSignedOffers(signed);
  if (offer === undefined) throw new Error('no offer');
  assert.deepEqual(findAcceptsObjectFromSignedOffer(offer, required.accepts), required.accepts[0]);
  assert.deepEqual(await verifyOfferSignatureJWS(jwsOf(offer.signedOffer), PUBLIC_KEY), {
    version: 1,
    resourceUrl: BASE_URL + PAID_ROUTES['execute/webhook'].path,
    scheme: 'exact',
    network: 'eip155:8453',
    asset: USDC,
    payTo: PAY_TO,
    amount: '3000',
    validUntil: Math.floor(clock.now() / 1000) + 300,
  });
  const [head = ''] = offer.signedOffer.signature.split('.');
  assert.deepEqual(JSON.parse(Buffer.from(head, 'base64url').toString()), { alg: 'EdDSA', kid: KEY_URL });
});

test('requests within a minute share one signed offer; after a clock is set back there is a new one', async () => {
  const clock = manualClock();
  const x402 = await lab({ clock });
  const offerOf = async (route: Route = 'execute/webhook') =>
    JSON.stringify(extractOffersFromPaymentRequired((await challenged(x402, { route })).required));
  const first = await offerOf();
  clock.advance(59_999);
  assert.equal(await offerOf(), first);
  assert.notEqual(await offerOf('execute/guided-webhook'), first);
  clock.advance(1);
  const second = await offerOf();
  assert.notEqual(second, first);
  clock.skew(-3_600_000);
  assert.notEqual(await offerOf(), second);
});

const requestOf = (input: string | URL | Request, init?: RequestInit): Request =>
  input instanceof Request ? input : new Request(String(input), init);

/** Answers 402 without a payment, and 200 with the presented payment. */
function shop({ protocol }: X402) {
  const paid: (1 | 2)[] = [];
  const fetchIt = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = requestOf(input, init);
    const header = (name: string) => request.headers.get(name);
    if (protocol.isPresented(header)) {
      const read = await protocol.read(header, 'client');
      if (isRefused(read)) return Response.json(read, { status: 402 });
      paid.push(read.x402Version);
      return new Response('served');
    }
    const { headers: more, body } = await protocol.challenge({
      route: 'execute/guided-webhook',
      reason: 'payment_required',
      message: null,
      hints: [{ path: '/', message: 'is empty' }],
    });
    return Response.json(body, { status: 402, headers: more });
  };
  return { paid, fetch: fetchIt as typeof fetch };
}

test('the stock clients of both versions pay the challenge, and their headers are within the limit', async () => {
  const x402 = await lab();
  const { paid, fetch: pay } = shop(x402);
  let longest = 0;
  const measured = (async (input: string | URL | Request, init?: RequestInit) => {
    const request = requestOf(input, init);
    for (const [, value] of request.headers) longest = Math.max(longest, value.length);
    return pay(request);
  }) as typeof fetch;
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet()));
  const url = `${BASE_URL}${PAID_ROUTES['execute/guided-webhook'].path}`;
  assert.equal(
    await (await wrapFetchWithPayment(measured, client)(url, { method: 'POST' })).text(),
    'served',
  );
  assert.equal(await (await wrapFetchV1(measured, wallet())(url, { method: 'POST' })).text(), 'served');
  assert.deepEqual(paid, [2, 1]);
  // A version 2 client repeats our extensions.
  assert.ok(longest < CLIENTS_TAKE / 2, `a header of ${longest} characters`);
});

/** Of a wallet without coins: the version 1 client creates a signer of another kind from it. */
const SOLANA_KEY = '3dXnQzA2tRrDQuRnL8KVdsBVVgwQQDd2a5x3HPoqtK759i7xXZ2KLJYUf2ockugm5HX49ngNWdFnXc3JKL62Y61D';

test('stock clients with several schemes and networks pay the challenge', async () => {
  const x402 = await lab();
  const { paid, fetch: pay } = shop(x402);
  const url = `${BASE_URL}${PAID_ROUTES['execute/guided-webhook'].path}`;
  const many = () => {
    const signer = wallet();
    return (
      registerExactEvmScheme(new x402Client(), { signer })
        .register('eip155:*', new UptoEvmScheme(signer))
        // Schemes of a network take precedence over those of its namespace.
        .register('eip155:8453', new UptoEvmScheme(signer))
        .register('eip155:8453', new ExactEvmScheme(signer))
        .register('eip155:*', new BatchSettlementEvmScheme(signer))
        .register('eip155:*', new AuthCaptureEvmScheme(signer))
        .register('eip155:84532', new ExactEvmScheme(signer))
    );
  };
  /** As behind a proxy that drops long headers: the body alone is left. */
  const bodyOnly = (async (input: string | URL | Request, init?: RequestInit) => {
    const { status, body } = await pay(input, init);
    return new Response(body, { status });
  }) as typeof fetch;
  const svm = await createSigner('solana-devnet', SOLANA_KEY);
  for (const paying of [
    wrapFetchWithPayment(pay, many()),
    wrapFetchWithPayment(bodyOnly, many()),
    wrapFetchV1(pay, { evm: wallet(), svm } as never),
    wrapFetchV1(pay, await createSigner('base', generatePrivateKey())),
  ]) {
    assert.equal(await (await paying(url, { method: 'POST' })).text(), 'served');
  }
  assert.deepEqual(paid, [2, 1, 1, 1]);
});
