// The contract of the vault, for every adapter.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sealing, Vault } from '#src/ports/vault.ts';

export type VaultHarness = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  open(): Promise<Vault>;
  /** Of another process on the same texts. */
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

export function vaultContract({ name, needs, open, again, end }: VaultHarness): void {
  describe(`vault, ${name}`, needs, () => {
    let vault: Vault;
    before(async () => {
      vault = await open();
    });
    after(end);

    test('what is sealed is read again, here and by another process; the log has its name only', async () => {
      const [name, text] = [nextName(), 'the secret request'.repeat(900)];
      const sealed = await seal(vault, text, { name });
      assert.equal(sealed, name);
      assert.equal(await vault.take(sealed), text);
      const other = await again();
      assert.equal(await other.take(sealed), text);
      await other.remove([sealed]);
      assert.equal(await vault.take(sealed), null);
      await vault.remove([sealed]);
    });

    test('two names have two texts; one name has one, also if two processes seal under it at once', async () => {
      const [a, b] = [await seal(vault, 'x'), await seal(vault, 'x')];
      await vault.remove([a]);
      assert.deepEqual([await vault.take(a), await vault.take(b)], [null, 'x']);
      const names = await vault.names();
      assert.deepEqual([names.includes(a), names.includes(b)], [false, true]);
      const [other, name] = [await again(), nextName()];
      const texts = await Promise.all(
        [vault, other, vault, other].map(async (one, n) => one.take(await seal(one, `${n}`, { name }))),
      );
      assert.equal(new Set(texts).size, 1);
      assert.ok(['0', '1', '2', '3'].includes(texts[0] ?? ''));
    });

    test('a holder has no more texts than its limit, however many processes seal at once', async () => {
      const other = await again();
      const seat = { holder: nextName(), max: 10, amount: 3000n };
      const put = (one: Vault, name: string) =>
        one.put({ name, text: 'x', untilMs: Date.now() + HOUR, seat });
      const sealed = await Promise.all(
        Array.from({ length: 100 }, (_, n) => put(n % 2 === 0 ? vault : other, nextName())),
      );
      const got = sealed.filter((one) => one !== null);
      assert.equal(got.length, 10);
      assert.deepEqual(await other.held(seat.holder), Array(10).fill(3000n));
      const [first = ''] = got;
      assert.notEqual(await put(vault, first), null, 'under a name that has its text');
      await vault.remove([first]);
      const large = { ...seat, amount: 10n ** 24n };
      assert.ok(await seal(other, 'x', { seat: large }));
      assert.ok((await vault.held(seat.holder)).includes(10n ** 24n));
      assert.equal(await put(vault, nextName()), null);
      assert.deepEqual(await vault.held('another'), []);
    });

    test('what was never sealed is null', async () => {
      const sealed = await seal(vault, 'x');
      assert.deepEqual(
        [await vault.take(`${sealed}.y`), await vault.take(''), await vault.take('x.y')],
        [null, null, null],
      );
    });

    test('texts that are removed at the same moment are gone when each removal resolves', async () => {
      const sealed = await Promise.all(Array.from({ length: 20 }, () => seal(vault, 'x')));
      const left = sealed.map(async (one) => {
        await vault.remove([one]);
        return vault.take(one);
      });
      assert.deepEqual(new Set(await Promise.all(left)), new Set([null]));
    });

    test('a text whose time has passed is deleted by a later put', async () => {
      const old = await seal(vault, 'x', { untilMs: Date.now() - HOUR });
      await seal(vault, 'y');
      assert.equal(await vault.take(old), null);
    });
  });
}
