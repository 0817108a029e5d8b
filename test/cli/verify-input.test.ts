// relay verify: the sources of receipts and keys, and inputs that are not a receipt.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';
import type { CliOptions } from '#test/support/process/cli-process.ts';
import {
  jws,
  key,
  keySet,
  receiptAnswer,
  receiptFolder,
  stranger,
} from '#test/support/process/cli-receipts.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';

const { path: folder, keys: KEYS, file, remove } = receiptFolder();
after(remove);

describe('an input that is not a receipt cannot be verified: exit 2, one line, no stack', () => {
  const refuses = async (args: readonly string[], line: RegExp, options: CliOptions = {}) => {
    const { code, stdout, stderr } = await runCli(['verify', ...args], options);
    assert.equal(stdout, '');
    assert.match(stderr, /^relay: [^\n]+\n$/);
    assert.match(stderr, line);
    assert.equal(code, 2);
  };

  test('a file without --keys: the error describes how to get them', () =>
    refuses([file('good.json', jws)], /--keys.*\/\.well-known\/jwks\.json/));
  test('a missing file', () => refuses([join(folder, 'nowhere'), '--keys', KEYS], /nowhere does not exist/));
  test('a folder', () => refuses([folder, '--keys', KEYS], /is a folder/));
  test('empty input', () =>
    refuses(['-', '--keys', KEYS], /standard input is neither JSON nor a JWS/, { stdin: '' }));
  test('bytes that are not text', () =>
    refuses([file('bytes', Buffer.from([0xff, 0xfe, 0])), '--keys', KEYS], /is not UTF-8 text/));
  test('text', () => refuses([file('text', 'Dear Sir or Madam,'), '--keys', KEYS], /neither JSON nor a JWS/));
  test('cut JSON', () => refuses([file('cut', '{"jws":"e'), '--keys', KEYS], /neither JSON nor a JWS/));
  test('JSON without a receipt', () =>
    refuses([file('list', '[1]'), '--keys', KEYS], /JSON without a receipt/));
  test('deeply nested JSON', () =>
    refuses([file('deep', `${'['.repeat(200_000)}${']'.repeat(200_000)}`), '--keys', KEYS], /receipt/));
  test('an error answer of the service', () =>
    refuses(
      [file('error', '{"error":{"code":"receipt_not_found","message":"x"}}'), '--keys', KEYS],
      /receipt_not_found/,
    ));
  test('a file of over 1 MiB', () =>
    refuses([file('huge', ' '.repeat(1024 * 1024 + 1)), '--keys', KEYS], /larger than 1 MiB/));
  test('an endless file', () => refuses(['/dev/zero', '--keys', KEYS], /larger than 1 MiB/));
  test('a missing key set', () =>
    refuses([file('good.json', jws), '--keys', join(folder, 'none')], /none does not exist/));
  test('a key set that is not JSON', () =>
    refuses([file('good.json', jws), '--keys', file('k', 'x')], /is not JSON/));
  test('JSON that is not a JWK set', () =>
    refuses([file('good.json', jws), '--keys', file('k', '{}')], /not a JWK set/));
  test('a JWK set without an Ed25519 key', () =>
    refuses([file('good.json', jws), '--keys', file('k', '{"keys":[{"kty":"RSA"}]}')], /no Ed25519 key/));
  test('a URL without a server', () =>
    refuses(['http://127.0.0.1:1/r', '--keys', KEYS], /cannot be reached/));
});

describe('over HTTP', () => {
  const serve = async (routes: Readonly<Record<string, string>>, use: (origin: string) => Promise<void>) => {
    const requested: string[] = [];
    await using server = await loopbackServer((request, response) => {
      requested.push(request.url ?? '');
      const body = routes[request.url ?? ''];
      response
        .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
        .end(body ?? '{}');
    });
    await use(server.url);
    return requested;
  };
  const answer = JSON.stringify(receiptAnswer(jws));

  test('a receipt by its URL is verified with the keys of the same origin', async () => {
    const routes = { '/api/receipts/r': answer, '/.well-known/jwks.json': keySet(key) };
    const requested = await serve(routes, async (origin) => {
      const { code, stdout } = await runCli(['verify', `${origin}/api/receipts/r`, '--json']);
      assert.equal(code, 0);
      assert.equal(JSON.parse(stdout).keysFrom, `${origin}/.well-known/jwks.json`);
    });
    assert.deepEqual(requested.sort(), ['/.well-known/jwks.json', '/api/receipts/r']);
  });

  test('with --keys the key set of the origin is not fetched', async () => {
    const requested = await serve(
      { '/r': answer, '/.well-known/jwks.json': keySet(stranger) },
      async (origin) => {
        assert.equal((await runCli(['verify', `${origin}/r`, '--keys', KEYS])).code, 0);
      },
    );
    assert.deepEqual(requested, ['/r']);
  });

  test('a file with the keys of a URL', async () => {
    await serve({ '/keys': keySet(key) }, async (origin) => {
      assert.equal((await runCli(['verify', file('good.json', jws), '--keys', `${origin}/keys`])).code, 0);
    });
  });

  test('a 404 cannot be verified', async () => {
    await serve({}, async (origin) => {
      const { code, stderr } = await runCli(['verify', `${origin}/r`, '--keys', KEYS]);
      assert.deepEqual([code, stderr], [2, `relay: ${origin}/r answered 404\n`]);
    });
  });

  test('an endless answer is aborted', async () => {
    await using server = await loopbackServer((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
      };
      response.on('drain', more);
      response.on('error', () => undefined);
      more();
    });
    const { code, stderr } = await runCli(['verify', `${server.url}/r`, '--keys', KEYS]);
    assert.equal(code, 2);
    assert.match(stderr, /larger than 1 MiB/);
  });
});
