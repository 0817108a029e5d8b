// The contract of the vault, for every adapter.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Vault } from '#src/ports/vault.ts';

export type VaultHarness = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  open(): Promise<Vault>;
  /** Of another process on the same keys. */
  again(): Promise<Vault>;
  end(): Promise<void>;
};

const HOUR = 3_600_000;

export function vaultContract({ name, needs, open, again, end }: VaultHarness): void {
  describe(`vault, ${name}`, needs, () => {
    let vault: Vault;
    before(async () => {
      vault = await open();
    });
    after(end);

    test('what is sealed is read again, here and by another process, and is not in the ciphertext', async () => {
      const sealed = await vault.put('the secret request', Date.now() + HOUR);
      assert.ok(!sealed.includes('secret') && !Buffer.from(sealed, 'base64url').includes('secret'));
      assert.equal(await vault.take(sealed), 'the secret request');
      const other = await again();
      assert.equal(await other.take(sealed), 'the secret request');
      await other.remove([sealed]);
      assert.equal(await vault.take(sealed), null);
      await vault.remove([sealed]);
    });

    test('one text twice has two ciphertexts, each with a key of its own', async () => {
      const [a, b] = [await vault.put('x', Date.now() + HOUR), await vault.put('x', Date.now() + HOUR)];
      assert.notEqual(a.split('.')[0], b.split('.')[0]);
      await vault.remove([a]);
      assert.deepEqual([await vault.take(a), await vault.take(b)], [null, 'x']);
    });

    test('a changed or foreign ciphertext is null', async () => {
      const sealed = await vault.put('x', Date.now() + HOUR);
      const last = sealed.at(-2) === 'A' ? 'B' : 'A';
      const changed = `${sealed.slice(0, -2)}${last}${sealed.slice(-1)}`;
      assert.deepEqual(
        [await vault.take(changed), await vault.take(''), await vault.take('x.y')],
        [null, null, null],
      );
    });

    test('a key whose time has passed is deleted by a later put', async () => {
      const old = await vault.put('x', Date.now() - HOUR);
      await vault.put('y', Date.now() + HOUR);
      assert.equal(await vault.take(old), null);
    });
  });
}
