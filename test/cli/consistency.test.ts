// relay consistency: with files, and against a relay.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { toBase64 } from '#src/domain/encoding.ts';
import { sha256, testKey } from '#test/support/given/primitives.ts';
import { ORIGIN, type SmallLog, smallLog } from '#test/support/log/small-log.ts';
import { runCli } from '#test/support/process/cli.ts';
import { keySet, receiptFolder } from '#test/support/process/cli-receipts.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';

const { file, remove } = receiptFolder();
after(remove);

const key = testKey({ purpose: 'checkpoint' });
const log = await filled(['a', 'b', 'c', 'd', 'e']);
const rewritten = await filled(['a', 'x', 'c', 'd', 'e']);
const keys = file('keys.json', keySet(key));
const older = file('older', await log.checkpoint(3));
const newer = file('newer', await log.checkpoint());
const proof = file('proof.json', await answerOf(log, 3, 5));

async function filled(texts: readonly string[]): Promise<SmallLog> {
  const made = smallLog(ORIGIN, key);
  for (const text of texts) await made.append(sha256(text));
  return made;
}

async function answerOf(of: SmallLog, from: number, to: number): Promise<string> {
  const [fromRoot, toRoot] = [toBase64(await of.root(from)), toBase64(await of.root(to))];
  return JSON.stringify({
    from,
    to,
    fromRoot,
    toRoot,
    proof: (await of.consistency(from, to)).map(toBase64),
  });
}

const consistency = (...args: readonly string[]) => runCli(['consistency', ...args]);

describe('relay consistency, offline', () => {
  test('the newer checkpoint continues the older one: exit 0', async () => {
    const { code, stdout, stderr } = await consistency(older, newer, '--proof', proof, '--keys', keys);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^Log relay\.example\/receipts\n {2}older {13}3 leaves, root \S+, from /);
    assert.match(stdout, /\n {2}✓ The newer checkpoint continues the older one\.\n\nVerified: /);
  });

  test('--json has both tree heads; the kept one may be an execution response', async () => {
    const kept = file('execution.json', JSON.stringify({ checkpoint: await log.checkpoint(3) }));
    const { code, stdout } = await consistency(kept, newer, '--proof', proof, '--keys', keys, '--json');
    const head = async (size: number) => ({
      origin: ORIGIN,
      size,
      root: toBase64(await log.root(size)),
      keyId: key.keyId,
    });
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), {
      ok: true,
      older: await head(3),
      newer: await head(5),
      keysFrom: keys,
    });
  });

  test('a rewritten log, a smaller one, and a foreign key set: exit 1 with the problem', async () => {
    const stranger = file('stranger.json', keySet(testKey({ purpose: 'checkpoint' })));
    const cases = [
      ['inconsistent', [older, file('rewritten', await rewritten.checkpoint()), '--keys', keys]],
      ['smaller', [newer, older, '--keys', keys]],
      ['fork', [newer, file('fork', await rewritten.checkpoint()), '--keys', keys]],
      ['older', [older, newer, '--keys', stranger]],
    ] as const;
    for (const [problem, args] of cases) {
      const { code, stdout } = await consistency(...args, '--proof', proof, '--json');
      assert.deepEqual([code, JSON.parse(stdout).problem], [1, problem]);
      const text = await consistency(...args, '--proof', proof);
      assert.match(text.stdout, /✗ .*\n\nNOT verified\.\n$/);
    }
  });

  test('what is missing or no checkpoint cannot be compared: exit 2', async () => {
    const cases = [
      [/--proof is missing: .*\?from=3&to=5$/m, [older, newer, '--keys', keys]],
      [/--keys is missing/, [older, newer, '--proof', proof]],
      [/proof\.json is not a checkpoint/, [proof, newer, '--keys', keys]],
    ] as const;
    for (const [message, args] of cases) {
      const { code, stdout, stderr } = await consistency(...args);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    }
  });
});

describe('relay consistency, against a relay', () => {
  const relay = (of: SmallLog) =>
    loopbackServer(async ({ url = '' }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://relay.example');
      const [from, to] = ['from', 'to'].map((name) => Number(searchParams.get(name)));
      if (pathname === '/log/checkpoint') response.end(await of.checkpoint());
      else if (pathname === '/.well-known/jwks.json') response.end(keySet(key));
      else if (pathname === '/log/consistency') response.end(await answerOf(of, from ?? 0, to ?? 0));
      else response.writeHead(404).end();
    });

  test('its newest checkpoint and the proof are fetched: continued, and rewritten', async () => {
    for (const [of, code] of [
      [log, 0],
      [rewritten, 1],
    ] as const) {
      await using server = await relay(of);
      const { url } = server;
      for (const address of [url, `${url}/`, `${url}/log/checkpoint`]) {
        assert.equal((await consistency(older, address, '--keys', keys)).code, code, address);
        assert.equal((await consistency(older, address)).code, code, address);
      }
    }
  });

  test('a checkpoint of the same size needs no proof', async () => {
    await using server = await relay(log);
    assert.equal((await consistency(newer, server.url)).code, 0);
  });
});
