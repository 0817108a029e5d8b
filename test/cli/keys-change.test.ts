// relay keys list, rotate and retire on a real key file and a real log.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { createKeyFile, keyFileStore, readKeyFile } from '#src/adapters/signing/key-file.ts';
import { activateSigningKeys } from '#src/usecases/signing-keys/key-ring.ts';
import { runCli } from '#test/support/process/cli.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('keys-change');
const keyFile = join(folder, 'keys.json');

/** The state after the first start of a service. */
async function startedOnce(): Promise<void> {
  createKeyFile(keyFile);
  const deps = { clock: systemClock(), entropy: systemEntropy(), logger: collectingLogger() };
  await withLog(folder, (log) => activateSigningKeys({ ...deps, log }, keyFileStore(keyFile).read()));
}

type Row = { keyId: string; purpose: string; state: string; notAfter: string | null; inFile: string | null };

const keys = (args: readonly string[], env = {}) =>
  runCli(['keys', ...args], { env: { DATA_DIR: folder, ...env } });
async function good([command, ...args]: readonly [string, ...string[]]) {
  const { code, stdout, stderr } = await keys([command, '--json', ...args]);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}
const list = async (): Promise<Row[]> => good(['list']);
const shown = (rows: readonly Row[]) =>
  rows.map(({ purpose, state, inFile }) => `${purpose} ${state} ${inFile}`);

const isRetiring = ({ state, purpose }: Row) => purpose === 'checkpoint' && state === 'retiring';

describe('relay keys, on the log of a service', () => {
  before(startedOnce);
  let first = '';
  let second = '';
  let printed = '';

  test('list: the keys that the first start announced', async () => {
    const rows = await list();
    assert.deepEqual(shown(rows), ['receipt active active', 'checkpoint active active']);
    first = rows[0]?.keyId ?? '';
  });

  test('retire: the only key that can sign is refused; the error names the command to run first', async () => {
    const { code, stdout, stderr } = await keys(['retire', '--', first]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^relay: no other receipt key [^\n]+`relay keys rotate` first\n$/);
    assert.equal((await keys(['retire', 'a'.repeat(43)])).code, 1);
  });

  test('rotate: a new key signs; the old one retires after ten minutes', async () => {
    const begun = Date.now();
    const { keyId, purpose, outcome, retiring, file } = await good(['rotate']);
    assert.deepEqual([purpose, outcome, file], ['receipt', 'rotated', keyFile]);
    assert.deepEqual(
      retiring.map((key: Row) => key.keyId),
      [first],
    );
    const graceMs = Date.parse(retiring[0].effectiveAt) - begun;
    assert.ok(graceMs > 599_000 && graceMs < 660_000, `${graceMs}`);
    second = keyId;
    assert.equal(readKeyFile(keyFile).keys[0]?.keyId, second);
  });

  test('retire --compromised --since: the list contains the time, as text and as JSON', async () => {
    const since = '2026-01-31T12:00:07Z';
    const retired = await good(['retire', '--compromised', '--since', since, '--', first]);
    assert.deepEqual([retired.outcome, retired.compromisedAt], ['retired', '2026-01-31T12:00:07.000Z']);
    const again = await keys(['retire', '--compromised', '--since', '2026-02-01', '--', first]);
    const [unchanged = '', retirement = '', rule = '', ...more] = again.stdout.split('\n');
    assert.deepEqual([again.code, more], [0, ['']]);
    assert.match(unchanged, /nothing was recorded/);
    assert.ok(
      retirement.startsWith(`receipt key ${first} is compromised since 2026-01-31 12:00:07 UTC: `),
      retirement,
    );
    assert.match(rule, /^Receipts that it signed from then on do not verify, .* earlier ones verify\.$/);
    const { code, stdout } = await keys(['list']);
    assert.equal(code, 0);
    const [, old = '', checkpoint = '', fresh = ''] = stdout.split('\n');
    assert.ok(old.startsWith(`${first}  receipt     compromised since 2026-01-31 12:00:07 UTC  `), stdout);
    assert.match(checkpoint, /^[\w-]{43} {2}checkpoint {2}active .* in the key file, active$/);
    assert.ok(fresh.startsWith(second), stdout);
    printed = stdout;
  });

  test('retire: the output for a retired checkpoint key, and for a compromised one', async () => {
    await good(['rotate', '--purpose', 'checkpoint']);
    const keyId = (await list()).find(isRetiring)?.keyId ?? assert.fail('no key is retiring');
    const over = await keys(['retire', '--', keyId]);
    assert.match(
      over.stdout,
      /^The key had ended .*\ncheckpoint key [\w-]{43} signs until [-\d]{10} \d\d:\d\d UTC\n$/,
    );
    const lost = await keys(['retire', '--compromised', '--', keyId]);
    assert.match(
      lost.stdout,
      /^checkpoint key [\w-]{43} is compromised since .*\nNone of its checkpoints counts any more/,
    );
    assert.deepEqual([over.code, lost.code], [0, 0]);
  });

  test('no private key and no secret is printed', async () => {
    const { keys: stored, hmacSecret } = JSON.parse(readFileSync(keyFile, 'utf8'));
    const { stdout, stderr } = await keys(['rotate', '--purpose', 'checkpoint']);
    assert.match(stdout, /^checkpoint key [\w-]{43} is announced\n/);
    const fresh = JSON.parse(readFileSync(keyFile, 'utf8')).keys[0];
    const all = printed + stdout + stderr;
    for (const secret of [hmacSecret, fresh.d, ...stored.map(({ d }: { d: string }) => d)])
      assert.ok(!all.includes(secret));
  });

  for (const [what, args] of [
    ['a day in the future', ['retire', '--compromised', '--since', '2999-01-01', '--', 'k'.repeat(43)]],
    ['a time without its zone', ['retire', '--compromised', '--since', '2026-01-31T12:00', 'k'.repeat(43)]],
  ] as const) {
    test(`${what} cannot run`, async () => {
      const { code, stdout, stderr } = await keys(args);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: [^\n]+\n$/);
    });
  }

  test('a key file of another log, or one that others can read, cannot run', async () => {
    const other = join(folder, 'other.json');
    createKeyFile(other);
    const strange = await keys(['rotate'], { SIGNING_KEYS_FILE: other });
    assert.deepEqual([strange.code, strange.stderr.includes('HMAC secret')], [2, true]);
    assert.equal(readKeyFile(other).keys.length, 2);
    writeFileSync(other, readFileSync(keyFile));
    chmodSync(other, 0o644);
    assert.equal((await keys(['list'], { SIGNING_KEYS_FILE: other })).code, 2);
  });
});
