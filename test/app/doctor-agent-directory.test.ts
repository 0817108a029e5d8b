// The doctor asks PUBLIC_BASE_URL for the keys by which targets verify outbound requests.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKeyFile, readKeyFile } from '#src/adapters/signing/key-file.ts';
import { checkAgentDirectory } from '#src/app/doctor/agent-directory.ts';
import { readConfig } from '#src/config.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const path = join(testFolder('doctor-agent'), 'keys.json');
createKeyFile(path);
const kid = readKeyFile(path).keys[0]?.agentKey?.keyId;
const TYPE = 'application/http-message-signatures-directory+json';
const signed = { 'content-type': TYPE, signature: 'sig1=:AA:', 'signature-input': 'sig1=()' };

const configOf = (publicBaseUrl: string, webBotAuth = true) => ({
  ...readConfig({ PORT: '0', SIGNING_KEYS_FILE: path }),
  publicBaseUrl,
  webBotAuth,
});

async function found(status: number, headers: Readonly<Record<string, string>>, keys: readonly object[]) {
  await using server = await loopbackServer(async (request, response) => {
    assert.equal(request.url, '/.well-known/http-message-signatures-directory');
    response.writeHead(status, headers).end(JSON.stringify({ keys }));
  });
  const { state, message } = await checkAgentDirectory(configOf(server.url));
  return `${state}: ${message}`;
}

test('the key of the key file is published: fine; anything else is named', async () => {
  assert.match(await found(200, signed, [{ kid: 'other' }, { kid }]), /^ok: .*publishes the key that signs/);
  assert.match(await found(200, signed, [{ kid: 'other' }]), /^problem: .*publishes none of the keys of/);
  assert.match(await found(404, signed, [{ kid }]), /^problem: .*answers 404/);
  assert.match(await found(200, { 'content-type': TYPE }, [{ kid }]), /^problem: .*unsigned/);
  assert.match(await found(200, { ...signed, 'content-type': 'text/html' }, []), /^problem: .*text\/html/);
});

test('switched off, or without a running service: skipped', async () => {
  const off = await checkAgentDirectory(configOf('https://relay.example', false));
  const none = await checkAgentDirectory(configOf('http://127.0.0.1:9'));
  assert.deepEqual([off.state, none.state], ['skipped', 'skipped']);
});
