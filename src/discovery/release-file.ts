import { readFileSync } from 'node:fs';

/** Returns a function that reads a file of this release at its first call and keeps its content. */
export const textFile = (url: URL): (() => string) => kept(() => readFileSync(url, 'utf8'));
export const binaryFile = (url: URL): (() => Uint8Array<ArrayBuffer>) =>
  kept(() => Uint8Array.from(readFileSync(url)));

function kept<T>(read: () => T): () => T {
  let content: { readonly value: T } | null = null;
  return () => {
    content ??= { value: read() };
    return content.value;
  };
}
