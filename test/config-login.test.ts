// The login at the facilitator, from the environment: keys and files in the forms of their providers; anything else is
// refused by the variable's name, and never shown.
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, type ConfigFault, type Environment, readConfig } from '#src/config.ts';
import { API_KEY_KINDS, environmentOf, newApiKey } from '#test/support/chain/facilitator-login.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('login');

const PAID = {
  X402_ENABLED: 'true',
  X402_PAY_TO: '0x1111111111111111111111111111111111111111',
  X402_FACILITATOR_URL: 'https://facilitator.example/v2/',
  X402_RPC_URL: 'https://rpc.example',
};
const loginIn = (env: Environment) => readConfig({ ...PAID, ...env }).x402?.login;

function faultsOf(env: Environment): readonly ConfigFault[] {
  try {
    loginIn(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}
const namesOf = (env: Environment) => faultsOf(env).map(({ variable }) => variable);

let files = 0;
function file(text: string, mode = 0o600): string {
  const path = join(folder, `headers-${++files}`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test('login: none unless it is set', () => {
  assert.equal(loginIn({}), null);
});

for (const kind of API_KEY_KINDS) {
  test(`login: a CDP key, ${kind}, also with \\n for its line breaks`, () => {
    const key = newApiKey(kind);
    const { x, d, y } = { y: undefined, ...key.publicKey };
    const env = environmentOf(key);
    const login = loginIn(env);
    assert.ok(login?.kind === 'cdp');
    assert.deepEqual([login.keyId, login.key.algorithm], [key.id, key.algorithm]);
    const { d: secret, ...publicKey } = login.key.jwk;
    assert.deepEqual([d, secret.length], [undefined, 43]);
    assert.deepEqual([publicKey.x, 'y' in publicKey ? publicKey.y : undefined], [x, y]);
    assert.deepEqual(loginIn({ ...env, CDP_API_KEY_SECRET: key.secret.replaceAll('\n', '\\n') }), login);
    assert.equal(readConfig({ ...PAID, ...env, X402_ENABLED: 'false' }).x402, null);
  });
}

test('login: a CDP key that cannot sign is refused, and not shown', () => {
  const { secret } = newApiKey('ed25519');
  const bytes = Buffer.from(secret, 'base64');
  const mixed = Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(newApiKey('ed25519').secret, 'base64').subarray(32),
  ]);
  const pem = (of: KeyObject) => String(of.export({ type: 'pkcs8', format: 'pem' }));
  const sec1 = newApiKey('sec1').secret;
  const wrong = [
    secret.slice(1),
    bytes.subarray(0, 32).toString('base64'),
    mixed.toString('base64'),
    `${secret} x`,
    sec1.replace(/[A-Za-z0-9+/]{20}/, ''),
    sec1.replaceAll('\n', ' '),
    pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey),
    pem(generateKeyPairSync('ed25519').privateKey),
    pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
    String(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }),
    ),
    '-----BEGIN EC PRIVATE KEY-----',
  ];
  for (const text of wrong) {
    const faults = faultsOf({ ...environmentOf(newApiKey('sec1')), CDP_API_KEY_SECRET: text });
    assert.deepEqual(
      faults.map(({ variable }) => variable),
      ['CDP_API_KEY_SECRET'],
      text.slice(0, 30),
    );
    for (const part of text.match(/[A-Za-z0-9+/]{12,}/g) ?? [])
      assert.ok(!faults[0]?.problem.includes(part), 'the fault shows no part of the key');
  }
  for (const id of ['a b', 'ü', 'x'.repeat(201)])
    assert.deepEqual(namesOf({ ...environmentOf(newApiKey('sec1')), CDP_API_KEY_ID: id }), [
      'CDP_API_KEY_ID',
    ]);
});

test('login: every part is required, and no part of another login is accepted', () => {
  const env = environmentOf(newApiKey('ed25519'));
  const { CDP_API_KEY_ID, CDP_API_KEY_SECRET } = env;
  const X402_FACILITATOR_AUTH = 'cdp';
  assert.deepEqual(namesOf({ X402_FACILITATOR_AUTH }), ['CDP_API_KEY_ID', 'CDP_API_KEY_SECRET']);
  assert.deepEqual(namesOf({ X402_FACILITATOR_AUTH, CDP_API_KEY_ID }), ['CDP_API_KEY_SECRET']);
  assert.deepEqual(namesOf({ X402_FACILITATOR_AUTH, CDP_API_KEY_SECRET }), ['CDP_API_KEY_ID']);
  assert.deepEqual(namesOf({ CDP_API_KEY_ID, CDP_API_KEY_SECRET }), ['X402_FACILITATOR_AUTH']);
  assert.deepEqual(namesOf({ CDP_API_KEY_ID }), ['X402_FACILITATOR_AUTH']);
  assert.deepEqual(namesOf({ ...env, X402_FACILITATOR_AUTH: 'jwt' }), ['X402_FACILITATOR_AUTH']);
  const X402_FACILITATOR_HEADERS_FILE = file('x-api-key: k');
  assert.deepEqual(namesOf({ ...env, X402_FACILITATOR_HEADERS_FILE }), ['X402_FACILITATOR_HEADERS_FILE']);
  // Other programs read these names: in demo mode they are not judged together.
  assert.deepEqual(namesOf({ X402_ENABLED: 'false', CDP_API_KEY_ID, CDP_API_KEY_SECRET }), []);
});

test('login: headers from a file, as lines or as JSON', () => {
  const headers = { authorization: 'Bearer 1a:2b', 'x-api-key': 'k e y' };
  for (const text of [
    '# the key of the relay\n\nAuthorization:  Bearer 1a:2b \r\nX-Api-Key: k e y\n',
    JSON.stringify({ Authorization: 'Bearer 1a:2b', 'X-Api-Key': 'k e y' }, null, 2),
  ]) {
    for (const mode of [0o600, 0o400]) {
      const login = loginIn({ X402_FACILITATOR_HEADERS_FILE: file(text, mode) });
      assert.deepEqual(login, { kind: 'headers', headers });
    }
  }
});

test('login: a file of headers that is open to others, or contains anything else, is refused and not shown', () => {
  const good = 'x-api-key: c4n4ry';
  const many = Array.from({ length: 17 }, (_, n) => `x-${n}: c4n4ry`).join('\n');
  const wrong = [
    ...[0o640, 0o604, 0o620, 0o666, 0o601].map((mode) => file(good, mode)),
    folder,
    join(folder, 'absent'),
    ...[
      '',
      '\n# x-api-key: c4n4ry\n',
      'c4n4ry',
      ': c4n4ry',
      'x-api-key:',
      'x api key: c4n4ry',
      'x-api-key: c4n4ry\u0007',
      'x-api-key: c4n4rÿ',
      'x-api-key: c4n4ry\nX-API-Key: c4n4ry',
      'content-type: c4n4ry',
      'Host: c4n4ry',
      'Connection: c4n4ry',
      many,
      '{"x-api-key":"c4n4ry"',
      '{"x-api-key":["c4n4ry"]}',
      '{"x-api-key":5}',
      '{"x-api-key":"c4n4ry\\r\\nx: y"}',
      '{"__proto__":"c4n4ry","":"c4n4ry"}',
      '{}',
      `x-api-key: ${'c4n4ry'.repeat(2000)}`,
      `# ${'c4n4ry'.repeat(20_000)}\n${good}`,
    ].map((text) => file(text)),
  ];
  for (const path of wrong) {
    const faults = faultsOf({ X402_FACILITATOR_HEADERS_FILE: path });
    assert.deepEqual(
      faults.map(({ variable }) => variable),
      ['X402_FACILITATOR_HEADERS_FILE'],
      path,
    );
    assert.doesNotMatch(faults[0]?.problem ?? '', /c4n4r|headers-\d/);
  }
});

test('login: no key in the facilitator’s URL', () => {
  for (const more of ['?key=c4n4ry', '#c4n4ry', '?']) {
    const [fault] = faultsOf({ X402_FACILITATOR_URL: `https://facilitator.example/v2${more}` });
    assert.equal(fault?.variable, 'X402_FACILITATOR_URL');
    assert.match(fault.problem, /X402_FACILITATOR_HEADERS_FILE/);
    assert.doesNotMatch(fault.problem, /c4n4ry/);
  }
});
