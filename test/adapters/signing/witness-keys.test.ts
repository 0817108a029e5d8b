// The key file of a witness, on both runtimes: its keys sign as the standard says, and no other file is taken for one.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freshWitnessKeys, readWitnessKeys } from '#src/adapters/signing/witness-keys.ts';
import { cosign, vkeyText } from '#src/domain/transparency/cosignature.ts';
import { signatureLine } from '#src/domain/transparency/note.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { c2spCheckpointText, c2spRoot, c2spVerify } from '#test/support/witness/c2sp.ts';
import { c2spKeyOf } from '#test/support/witness/c2sp-log.ts';

const folder = testFolder('witness-keys');
const path = join(folder, 'witness.key');
const { keys, save } = await freshWitnessKeys('witness.example/w1');
save(path);

test('both keys cosign as the standard’s text verifies, also after they were read again', async () => {
  const text = c2spCheckpointText('log.example', 2, c2spRoot(['a', 'b']));
  for (const { signers } of [keys, await readWitnessKeys(path)]) {
    assert.equal(signers.length, 2);
    for (const { key, sign } of signers) {
      const line = signatureLine(await cosign({ text }, key, 1_700_000_000, sign));
      assert.deepEqual(c2spVerify(text, line, c2spKeyOf(vkeyText(key))), { time: 1_700_000_000 });
    }
  }
  assert.throws(() => save(path), /is there already/);
});

test('a file with other keys, with parts that do not belong together, or of another form is refused', async () => {
  const good = JSON.parse(readFileSync(path, 'utf8'));
  const other = (await freshWitnessKeys('w')).keys.signers.map(({ key }) =>
    Buffer.from(key.publicKey).toString('base64url'),
  );
  const [ed25519, mlDsa44] = good.keys;
  const wrong: Readonly<Record<string, readonly [content: unknown, problem: RegExp]>> = {
    'no JSON': ['{', /is no key file of a witness/],
    'no name': [{ ...good, name: 'a b' }, /is no key file of a witness/],
    'no keys': [{ ...good, keys: [] }, /is no key file of a witness/],
    'a key of another kind': [
      { ...good, keys: [{ ...ed25519, crv: 'X25519' }] },
      /is no key file of a witness/,
    ],
    'another public Ed25519 key': [{ ...good, keys: [{ ...ed25519, x: other[0] }] }, /look at "\/keys\/0"/],
    'another public ML-DSA-44 key': [
      { ...good, keys: [ed25519, { ...mlDsa44, pub: other[1] }] },
      /look at "\/keys\/1"/,
    ],
    'a short key': [{ ...good, keys: [{ ...ed25519, d: 'AAAA' }] }, /look at "\/keys\/0"/],
  };
  for (const [title, [content, problem]] of Object.entries(wrong)) {
    const file = join(folder, `${title}.key`);
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
    await assert.rejects(readWitnessKeys(file), problem, title);
  }
});
