// The doctor asks for the service's own 402 at PUBLIC_BASE_URL, and names what it finds there instead.
import assert from 'node:assert/strict';
import type * as http from 'node:http';
import { test } from 'node:test';
import { checkPublicAddress } from '#src/app/doctor/public-address.ts';
import { readServiceConfig } from '#src/config.ts';
import { challenged, lab, PAY_TO } from '#test/adapters/payments/lab.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';

const PATH = '/api/execute/webhook';

const configOf = (baseUrl: string, env: Readonly<Record<string, string>> = {}) =>
  readServiceConfig({
    PORT: '0',
    PUBLIC_BASE_URL: baseUrl,
    X402_ENABLED: 'true',
    X402_PAY_TO: PAY_TO,
    X402_FACILITATOR_URL: 'http://127.0.0.1:9',
    X402_RPC_URL: 'http://127.0.0.1:9',
    ...env,
  });

type Answer = (response: http.ServerResponse, url: string) => void | Promise<void>;

async function found(answer: Answer): Promise<string> {
  await using server = await loopbackServer(async (request, response) => {
    assert.deepEqual([request.method, request.url], ['POST', PATH]);
    await answer(response, `${server.url}${PATH}`);
  });
  const { state, message } = await checkPublicAddress(configOf(server.url));
  return `${state}: ${message}`;
}

const header = (required: unknown) => Buffer.from(JSON.stringify(required)).toString('base64');

/** The relay's real 402 for that resource. */
async function ours(url: string, changes: object = {}) {
  const { required } = await challenged(await lab());
  return header({ ...required, resource: { ...required.resource, url }, ...changes });
}

test('its own 402: fine, with the size of its head', async () => {
  const text = await found(async (response, url) => {
    response.writeHead(402, { 'payment-required': await ours(url) }).end('{}');
  });
  assert.match(text, /^ok: http.*answers 402 for X402_PAY_TO, in a head of about \d{4} bytes$/);
});

test('a head that proxies may refuse is a warning', async () => {
  const text = await found(async (response, url) => {
    response.writeHead(402, { 'payment-required': await ours(url, { more: 'x'.repeat(2000) }) }).end('{}');
  });
  assert.match(text, /^warning: .*proxy_buffer_size/);
});

test('a proxy that refuses the head, drops the header, redirects or passes to another program is named', async () => {
  const cases: readonly (readonly [Answer, RegExp])[] = [
    [(response) => void response.writeHead(502).end(), /^problem: .*answers 502 .*proxy_buffer_size/],
    [(response) => void response.writeHead(402).end('{}'), /^problem: .*without the header PAYMENT-REQUIRED/],
    [
      (response) => void response.writeHead(301, { location: 'https://www.example/' }).end(),
      /^problem: .*redirects \(301\)/,
    ],
    [(response) => void response.writeHead(404).end(), /^problem: .*answers 404, not 402/],
    [
      async (response) =>
        void response
          .writeHead(402, { 'payment-required': await ours('https://other.example/api/execute/webhook') })
          .end('{}'),
      /^problem: .*a 402 for https:\/\/other\.example.*another PUBLIC_BASE_URL/,
    ],
    [
      async (response, url) =>
        void response.writeHead(402, { 'payment-required': await ours(url, { accepts: [] }) }).end('{}'),
      /^problem: .*another payee/,
    ],
    [
      (response) => void response.writeHead(402, { 'payment-required': 'e30=' }).end('{}'),
      /^problem: .*no resource/,
    ],
  ];
  for (const [answer, expected] of cases) assert.match(await found(answer), expected);
});

test('no answer while no service runs here, and demo mode: not asked', async () => {
  const { url } = await (async () => {
    await using server = await loopbackServer(async () => undefined);
    return server;
  })();
  assert.equal((await checkPublicAddress(configOf(url))).state, 'skipped');
  assert.equal((await checkPublicAddress(readServiceConfig({ PORT: '0' }))).state, 'skipped');
});
