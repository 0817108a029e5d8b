import { readFileSync } from 'node:fs';

/** Returns a function that reads a file of this release at its first call and caches its content. */
export const textFile = (url: URL): (() => string) => cached(() => readFileSync(url, 'utf8'));
export const binaryFile = (url: URL): (() => Uint8Array<ArrayBuffer>) =>
  cached(() => Uint8Array.from(readFileSync(url)));

function cached<T>(read: () => T): () => T {
  let content: { readonly value: T } | null = null;
  return () => {
    content ??= { value: read() };
    return content.value;
  };
}
