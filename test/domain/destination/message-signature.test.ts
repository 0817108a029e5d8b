// Message signatures (RFC 9421): by the vectors of the RFC, and judged by an independent implementation.
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { test } from 'node:test';
import { createVerifier, httpbis } from 'http-message-signatures';
import { buildOutboundHeaders, judgeHeaders } from '#src/domain/destination/headers.ts';
import {
  directorySignatures,
  type MessageKey,
  messageSignature,
  requestSignature,
  type SignedRequest,
} from '#src/domain/destination/message-signature.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const key: MessageKey = {
  keyId: 'key-1',
  sign: async (message) => new Uint8Array(sign(null, message, privateKey)),
};
const CREATED = Math.floor(Date.now() / 1000);
const nonce = randomBytes(64).toString('base64');
const body = new TextEncoder().encode('{"é":1}');
const request: SignedRequest = {
  method: 'POST',
  authority: 'target.example:8443',
  path: '/hook?order=17',
  body,
  agent: 'https://relay.example',
  created: CREATED,
  nonce,
};
const sent = (headers: readonly (readonly [string, string])[]) => ({
  method: 'POST',
  url: 'https://target.example:8443/hook?order=17',
  headers: Object.fromEntries(headers),
});

/** The verdict of the independent implementation at the time of the signature. */
async function verdict(message: ReturnType<typeof sent>, fields: readonly string[]) {
  const stated: unknown[] = [];
  const valid = await httpbis.verifyMessage(
    {
      keyLookup: async (parameters) => {
        stated.push(parameters);
        return {
          id: 'key-1',
          algs: ['ed25519'],
          verify: createVerifier(publicKey.export({ type: 'spki', format: 'pem' }), 'ed25519'),
        };
      },
      requiredFields: [...fields],
      requiredParams: ['created', 'expires', 'keyid', 'nonce', 'tag'],
    },
    message,
  );
  return { valid, stated };
}

test('RFC 9421 B.2.6: the Ed25519 signature of the RFC, byte for byte', async () => {
  const d = 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU';
  const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs';
  const rfcKey = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  const base = [
    '"date": Tue, 20 Apr 2021 02:07:55 GMT',
    '"@method": POST',
    '"@path": /foo',
    '"@authority": example.com',
    '"content-type": application/json',
    '"content-length": 18',
    '"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
  ].join('\n');
  const expected = 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==';
  assert.equal(sign(null, Buffer.from(base), rfcKey).toString('base64'), expected);
  // The same components by this project's code: its base differs in the parameters that it always states.
  const messages: string[] = [];
  const recording: MessageKey = {
    keyId: 'test-key-ed25519',
    sign: async (message) => {
      messages.push(Buffer.from(message).toString());
      return new Uint8Array(sign(null, message, rfcKey));
    },
  };
  const components = base
    .split('\n')
    .slice(0, -1)
    .map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)] as const);
  const facts = { created: 1_618_884_473, expires: 1_618_884_533, nonce: 'n', tag: 't' };
  const { input } = await messageSignature(components, facts, recording);
  const params = input.replace(/;expires=.*$/, '');
  const [made = ''] = messages;
  assert.equal(
    `${made.slice(0, made.lastIndexOf('\n'))}\n"@signature-params": ${params};keyid="test-key-ed25519"`,
    base,
  );
});

test('a request verifies with an independent implementation, and no changed one does', async () => {
  const headers = await requestSignature([], request, key);
  assert.deepEqual(
    headers.map(([name]) => name),
    ['content-digest', 'signature-agent', 'signature-input', 'signature'],
  );
  const message = sent(headers);
  const fields = ['@authority', '@method', '@path', 'content-digest', 'signature-agent'];
  const { valid, stated } = await verdict(message, fields);
  assert.equal(valid, true);
  assert.deepEqual(stated, [
    {
      created: new Date(CREATED * 1000),
      expires: CREATED + 120,
      keyid: 'key-1',
      alg: 'ed25519',
      nonce,
      tag: 'web-bot-auth',
    },
  ]);
  const digest = createHash('sha256').update(body).digest('base64');
  assert.equal(message.headers['content-digest'], `sha-256=:${digest}:`);
  assert.equal(message.headers['signature-agent'], 'sig1="https://relay.example"');
  const changed = [
    { ...message, method: 'PUT' },
    { ...message, url: 'https://other.example/hook' },
    { ...message, url: 'https://target.example:8443/other' },
    { ...message, headers: { ...message.headers, 'content-digest': 'sha-256=:AAAA:' } },
    { ...message, headers: { ...message.headers, 'signature-agent': 'sig1="https://other.example"' } },
  ];
  for (const one of changed) assert.equal((await verdict(one, [])).valid, false, JSON.stringify(one));
});

test('without a body no digest is sent or signed', async () => {
  const headers = await requestSignature([], { ...request, body: null }, key);
  assert.equal(
    headers.some(([name]) => name === 'content-digest'),
    false,
  );
  assert.equal((await verdict(sent(headers), ['@authority', '@method', '@path'])).valid, true);
});

test('a signature or an agent of the caller wins; its digest is signed as it is', async () => {
  for (const name of ['signature', 'signature-input', 'signature-agent'])
    assert.deepEqual(await requestSignature([[name, 'x']], request, key), []);
  const own = [['content-digest', ' sha-512=:AAAA: ']] as const;
  const headers = await requestSignature(own, request, key);
  assert.equal(
    headers.some(([name]) => name === 'content-digest'),
    false,
  );
  assert.equal((await verdict(sent([...own, ...headers]), ['content-digest'])).valid, true);
});

test('the headers of a call end with the signature, or are without it as before', async () => {
  const judged = judgeHeaders({ 'X-A': '1' });
  assert.ok(!('refused' in judged));
  const call = {
    jobId: 'job_1',
    baseUrl: request.agent,
    pseudonym: 'relay.example',
    timestampSeconds: CREATED,
    body,
  };
  const plain = await buildOutboundHeaders(judged, call, key.sign);
  const { method, authority, path } = request;
  const signed = await buildOutboundHeaders(judged, call, key.sign, { method, authority, path, nonce, key });
  assert.deepEqual(signed, [...plain, ...(await requestSignature([], request, key))]);
});

test('a directory is signed by each of its keys for its own host', async () => {
  const headers = await directorySignatures([key, { ...key, keyId: 'key-2' }], {
    authority: 'relay.example',
    created: CREATED,
    nonce,
  });
  const url = 'https://relay.example/.well-known/http-message-signatures-directory';
  const config = {
    keyLookup: async () => ({
      verify: createVerifier(publicKey.export({ type: 'spki', format: 'pem' }), 'ed25519'),
    }),
    all: true,
  };
  const asked = { method: 'GET', url, headers: {} };
  assert.equal(await httpbis.verifyMessage(config, { status: 200, headers }, asked), true);
  const elsewhere = { ...asked, url: url.replace('relay', 'other') };
  assert.equal(await httpbis.verifyMessage(config, { status: 200, headers }, elsewhere), false);
  assert.match(headers['signature-input'] ?? '', /^sig1=\("@authority";req\);.*, sig2=\("@authority";req\);/);
  assert.deepEqual(
    await directorySignatures([], { authority: 'relay.example', created: CREATED, nonce }),
    {},
  );
});
