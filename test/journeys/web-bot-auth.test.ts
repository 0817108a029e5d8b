// Outbound requests as a bot filter judges them: a target behind TLS that admits only robots which it can verify, with an
// independent implementation and the directory that the service publishes behind its TLS front.
import assert from 'node:assert/strict';
import { createHash, createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import { createVerifier, httpbis } from 'http-message-signatures';
import type { Service } from '#test/support/process/service.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import {
  type Answer,
  type RecordedRequest,
  startTlsTarget,
  type TlsTarget,
} from '#test/support/process/tls-target.ts';
import { type Executed, execute, makeWorld, type World } from '#test/support/world/service-world.ts';

const DIRECTORY = '/.well-known/http-message-signatures-directory';
const RELAY = 'relay.test';
const JSON_TYPE = { 'content-type': 'application/json' };
const ca = makeTestCa();

let front: TlsTarget;
let world: World;
let service: Service;

/** Terminates TLS, as in a deployment, and passes on. */
async function passOn({ method, path }: RecordedRequest): Promise<Answer> {
  const answer = await fetch(`${service.url}${path}`, { method });
  const passed = ['content-type', 'signature', 'signature-input'];
  const headers = [...answer.headers].filter(([name]) => passed.includes(name));
  return { status: answer.status, headers: Object.fromEntries(headers), body: await answer.text() };
}

/** One request over TLS to this machine, whose certificate must be of `name`. */
async function exchange(port: number, name: string, bytes: string | Uint8Array) {
  const socket = connect({ host: '127.0.0.1', port, servername: name, ca: ca.pem });
  await once(socket, 'secureConnect');
  assert.equal(socket.authorized, true);
  socket.write(bytes);
  const blocks: Buffer[] = [];
  socket.on('data', (block: Buffer) => blocks.push(block));
  await once(socket, 'end');
  socket.destroy();
  const text = Buffer.concat(blocks).toString();
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [status = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line) => line.split(/: (.*)/s).slice(0, 2));
  return { status: Number(status.split(' ')[1]), headers: Object.fromEntries(headers), body };
}

const pemOf = (jwk: object) =>
  createPublicKey({ key: { ...jwk }, format: 'jwk' }).export({ type: 'spki', format: 'pem' });

type AgentKey = { readonly kid: string };

/** Of a directory that is signed for its host by each of its keys. */
async function keysOf(agent: string): Promise<readonly AgentKey[]> {
  const { hostname, port, host } = new URL(agent);
  const get = `GET ${DIRECTORY} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
  const { status, headers, body } = await exchange(Number(port), hostname, get);
  assert.deepEqual(
    [status, headers['content-type']],
    [200, 'application/http-message-signatures-directory+json'],
  );
  const { keys } = JSON.parse(body) as { readonly keys: readonly AgentKey[] };
  const keyLookup = async ({ keyid }: { readonly keyid?: string }) => verifierOf(keys, keyid);
  const asked = { method: 'GET', url: `${agent}${DIRECTORY}`, headers: { host } };
  const isSigned = await httpbis.verifyMessage({ all: true, keyLookup }, { status, headers }, asked);
  assert.equal(isSigned, true);
  return keys;
}

function verifierOf(keys: readonly AgentKey[], keyid: string | undefined) {
  const key = keys.find(({ kid }) => kid === keyid);
  return key === undefined ? null : { verify: createVerifier(pemOf(key), 'ed25519') };
}

const seen = new Set<string>();

/** Why the request is of no verified robot; null: it is of one. */
async function refusalOf({ method, path, headers, body }: RecordedRequest): Promise<string | null> {
  const [, agent] = /^sig1="([^"]+)"$/.exec(headers['signature-agent'] ?? '') ?? [];
  if (agent === undefined) return 'an unknown robot';
  const keys = await keysOf(agent);
  const nonces: string[] = [];
  const valid = await httpbis.verifyMessage(
    {
      async keyLookup({ keyid, nonce, tag }) {
        nonces.push(String(nonce));
        return tag === 'web-bot-auth' ? verifierOf(keys, keyid) : null;
      },
      requiredFields: [
        ...['@authority', '@method', '@path', 'signature-agent'],
        ...(body.length > 0 ? ['content-digest'] : []),
      ],
      requiredParams: ['created', 'expires', 'keyid', 'nonce', 'tag'],
    },
    { method, url: `https://${headers.host}${path}`, headers },
  );
  if (valid !== true) return 'a wrong signature';
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  if (body.length > 0 && headers['content-digest'] !== digest) return 'another body';
  if (nonces.some((nonce) => seen.has(nonce))) return 'a replay';
  for (const nonce of nonces) seen.add(nonce);
  return null;
}

async function filter(request: RecordedRequest): Promise<Answer> {
  const refusal = await refusalOf(request).catch((error: unknown) => `a fault: ${error}`);
  return refusal === null
    ? {}
    : { status: 403, headers: { 'X-Filter': 'robots', 'X-Other': 'not shown' }, body: refusal };
}

describe('a target that admits verified robots only', () => {
  before(async () => {
    front = await startTlsTarget({ ca, names: [RELAY], handler: passOn });
    world = await makeWorld({ ca, handler: filter });
    service = await world.start({
      PUBLIC_BASE_URL: new URL(front.url('/', RELAY)).origin,
      ALLOW_FREE_RELAY: 'true',
      RETURN_RESPONSE_HEADERS: 'x-filter',
    });
  });
  after(async () => {
    await world?.end();
    await front?.close();
  });

  const answerOf = async (order: object, headers?: Readonly<Record<string, string>>) => {
    const { status, body } = await execute(service, order, { prefer: 'return=representation', ...headers });
    const { response } = body as Executed & {
      readonly response?: { readonly body: string; readonly headers: object };
    };
    return [status, body.job.responseStatus, response?.body, response?.headers];
  };

  for (const [method, body] of [
    ['POST', { order: 17, note: 'größer' }],
    ['DELETE', undefined],
  ] as const)
    test(`${method}: verified with the directory that the request names, and admitted`, async () => {
      const url = world.target.url(`/verified?${method}=1`);
      assert.deepEqual(await answerOf({ url, method, body }), [200, 200, '', JSON_TYPE]);
      assert.equal(front.requests.at(-1)?.path, DIRECTORY);
    });

  test('the same bytes again, with another body, or at another path or host are refused', async () => {
    const [sent] = world.target.requests;
    assert.ok(sent);
    const again = (change: (text: string) => string) => {
      const text = change(`${sent.head}\r\n\r\n${sent.body.toString('latin1')}`);
      return exchange(world.target.port, 'target.test', Buffer.from(text, 'latin1'));
    };
    for (const [change, refusal] of [
      [(text: string) => text, 'a replay'],
      [(text: string) => text.replace('"order":17', '"order":18'), 'another body'],
      [(text: string) => text.replace('/verified?', '/other?'), 'a wrong signature'],
      [(text: string) => text.replace(/host: target/i, 'host: other'), 'a wrong signature'],
    ] as const) {
      const { status, body } = await again(change);
      assert.deepEqual([status, body], [403, refusal]);
    }
  });

  test('a caller’s own signature is sent in its place; a buyer who asks sees why it is refused', async () => {
    const own = { 'signature-input': 'sig1=();created=1', signature: 'sig1=:AA==:' };
    const url = world.target.url('/own');
    const shown = { ...JSON_TYPE, 'x-filter': 'robots' };
    assert.deepEqual(await answerOf({ url, headers: own }), [502, 403, 'an unknown robot', shown]);
    assert.equal(world.target.requests.at(-1)?.headers.signature, own.signature);
  });
});
