// Replaces a text in the source of a module while it is loaded, in the memory of this process only (Bun).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootPath } from '#test/support/process/runtime.ts';

/** `find`: is in the file exactly once. */
export type Change = { readonly file: string; readonly find: string; readonly replace: string };

const altered = new Map<string, string>();

/** Call it before the module is loaded. Throws if the text is not in the file exactly once. */
export function alterModule(change: Change): void {
  const path = join(rootPath, change.file);
  if (altered.size === 0) install();
  altered.set(path, replaceOnce(altered.get(path) ?? readFileSync(path, 'utf8'), change));
}

export function replaceOnce(source: string, { file, find, replace }: Change): string {
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new Error(`${file} contains this text ${parts.length - 1} times, not once: ${find}`);
  return parts.join(replace);
}

function install(): void {
  Bun.plugin({
    name: 'altered modules',
    setup(build) {
      build.onLoad({ filter: /\/(src|projections)\/.*\.ts$/ }, ({ path }) => ({
        contents: altered.get(path) ?? readFileSync(path, 'utf8'),
        loader: 'ts',
      }));
    },
  });
}
