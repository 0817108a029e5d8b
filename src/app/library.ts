// The importable verifier as files that the service publishes: the same that `npm pack` makes of src/verify/built.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Library } from '#src/http/routes/library.ts';
import { tarOf } from '#src/lib/tar.ts';
import { PACKAGED } from '#src/verify/package.ts';

const bytesOf = (name: string): Uint8Array =>
  readFileSync(new URL(`../verify/built/${name}`, import.meta.url));

export const publishedLibrary: Library = {
  text: (name) => new TextDecoder().decode(bytesOf(name)),
  archive() {
    const files = ['package.json', ...PACKAGED].map((name) => ({
      name: `package/${name}`,
      content: bytesOf(name),
    }));
    return Uint8Array.from(gzipSync(tarOf(files)));
  },
};
