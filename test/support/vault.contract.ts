// The contract of the vault, for every adapter.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sealing, Vault } from '#src/ports/vault.ts';

export type VaultHarness = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  open(): Promise<Vault>;
  /** Of another process on the same keys. */
  again(): Promise<Vault>;
  end(): Promise<void>;
};

const HOUR = 3_600_000;

let names = 0;
const nextName = () => `name-${++names}`;
async function seal(vault: Vault, text: string, more: Partial<Sealing> = {}): Promise<string> {
  const sealing = { name: nextName(), text, untilMs: Date.now() + HOUR, seat: null, ...more };
  const sealed = await vault.put(sealing);
  assert.ok(sealed !== null);
  return sealed;
}
const nameOf = (sealed: string) => sealed.slice(0, sealed.indexOf('.'));

export function vaultContract({ name, needs, open, again, end }: VaultHarness): void {
  describe(`vault, ${name}`, needs, () => {
    let vault: Vault;
    before(async () => {
      vault = await open();
    });
    after(end);

    test('what is sealed is read again, here and by another process, and is not in the ciphertext', async () => {
      const sealed = await seal(vault, 'the secret request');
      assert.ok(!sealed.includes('secret') && !Buffer.from(sealed, 'base64url').includes('secret'));
      assert.equal(await vault.take(sealed), 'the secret request');
      const other = await again();
      assert.equal(await other.take(sealed), 'the secret request');
      await other.remove([nameOf(sealed)]);
      assert.equal(await vault.take(sealed), null);
      await vault.remove([nameOf(sealed)]);
    });

    test('two names have two keys; one name has one, also if two processes seal under it at once', async () => {
      const [a, b] = [await seal(vault, 'x'), await seal(vault, 'x')];
      await vault.remove([nameOf(a)]);
      assert.deepEqual([await vault.take(a), await vault.take(b)], [null, 'x']);
      const names = await vault.names();
      assert.deepEqual([names.includes(nameOf(a)), names.includes(nameOf(b))], [false, true]);
      const [other, name] = [await again(), nextName()];
      const texts = await Promise.all(
        [vault, other, vault, other].map(async (one, n) => one.take(await seal(one, `${n}`, { name }))),
      );
      assert.deepEqual(texts, ['0', '1', '2', '3']);
    });

    test('a holder has no more keys than its limit, however many processes seal at once', async () => {
      const other = await again();
      const seat = { holder: nextName(), max: 10 };
      const put = (one: Vault, name: string) =>
        one.put({ name, text: 'x', untilMs: Date.now() + HOUR, seat });
      const sealed = await Promise.all(
        Array.from({ length: 100 }, (_, n) => put(n % 2 === 0 ? vault : other, nextName())),
      );
      const got = sealed.filter((one) => one !== null);
      assert.deepEqual([got.length, await other.held(seat.holder)], [10, 10]);
      const [first = ''] = got;
      assert.notEqual(await put(vault, nameOf(first)), null, 'under a name that has its key');
      await vault.remove([nameOf(first)]);
      assert.notEqual(await put(other, nextName()), null);
      assert.equal(await put(vault, nextName()), null);
      assert.equal(await vault.held('another'), 0);
    });

    test('a changed or foreign ciphertext is null', async () => {
      const sealed = await seal(vault, 'x');
      const last = sealed.at(-2) === 'A' ? 'B' : 'A';
      const changed = `${sealed.slice(0, -2)}${last}${sealed.slice(-1)}`;
      assert.deepEqual(
        [await vault.take(changed), await vault.take(''), await vault.take('x.y')],
        [null, null, null],
      );
    });

    test('keys that are removed at the same moment are gone when each removal resolves', async () => {
      const sealed = await Promise.all(Array.from({ length: 20 }, () => seal(vault, 'x')));
      const left = sealed.map(async (one) => {
        await vault.remove([nameOf(one)]);
        return vault.take(one);
      });
      assert.deepEqual(new Set(await Promise.all(left)), new Set([null]));
    });

    test('a key whose time has passed is deleted by a later put', async () => {
      const old = await seal(vault, 'x', { untilMs: Date.now() - HOUR });
      await seal(vault, 'y');
      assert.equal(await vault.take(old), null);
    });
  });
}
