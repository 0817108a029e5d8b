// The key file as the port has it: keys that sign, and the mark by which two secrets are told apart.
import type { KeyStore, KeyStoreContent } from '../../ports/key-store.ts';
import { ed25519SigningKey } from './ed25519.ts';
import { secretCheck } from './hash.ts';
import { updateKeyFile } from './key-file.ts';
import { readOwnersFile } from './key-file-disk.ts';
import { type KeyFile, parseKeyFile } from './key-file-text.ts';

export function keyFileStore(path: string): KeyStore {
  let seen: string | null = null;
  const readNow = () => {
    const { text, stamp } = readOwnersFile(path);
    return { stamp, content: contentOf(parseKeyFile(path, text)) };
  };
  return {
    read() {
      const { stamp, content } = readNow();
      seen ??= stamp;
      return content;
    },
    readIfChanged() {
      const { text, stamp } = readOwnersFile(path);
      if (stamp === seen) return null;
      const content = contentOf(parseKeyFile(path, text));
      // Only now: what could not be read is looked at again.
      seen = stamp;
      return content;
    },
    update: (change) => contentOf(updateKeyFile(path, (file) => change(contentOf(file)))),
  };
}

const contentOf = ({ keys, hmacSecret }: KeyFile): KeyStoreContent => ({
  keys: keys.map((key) => ({ ...ed25519SigningKey(key), ...publicPart(key) })),
  secretCheck: secretCheck(hmacSecret),
});

const publicPart = ({ keyId, purpose, status, x }: KeyFile['keys'][number]) => ({
  keyId,
  purpose,
  status,
  x,
});
