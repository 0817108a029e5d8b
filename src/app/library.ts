// The importable verifier as files that the service publishes: the same that `npm pack` makes of src/verify/built.
import { gzipSync } from 'node:zlib';
import { assetBytes, assetText } from '#src/assets.ts';
import type { Library } from '#src/http/routes/library.ts';
import { tarOf } from '#src/lib/tar.ts';
import { PACKAGED } from '#src/verify/package.ts';

export const publishedLibrary: Library = {
  text: (name) => assetText(`src/verify/built/${name}`),
  archive() {
    const files = ['package.json', ...PACKAGED].map((name) => ({
      name: `package/${name}`,
      content: assetBytes(`src/verify/built/${name}`),
    }));
    return Uint8Array.from(gzipSync(tarOf(files)));
  },
};
