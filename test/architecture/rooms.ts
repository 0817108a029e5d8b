// Which room a file stands in, and what of a table row covers an import.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { rootPath } from '#test/support/runtime.ts';
import { scanImports } from './scan-imports.ts';

/** `src/adapters/quota`, `projections/job`, `projections` for its own files, `src/config` for config-values.ts too. */
export function roomOf(file: string): string {
  const [top = '', second = '', third = '', ...rest] = file.split('/');
  if (top === 'projections') return third === '' ? 'projections' : `projections/${second}`;
  if (top !== 'src') return top;
  if (second === 'adapters' && rest.length > 0) return `src/adapters/${third}`;
  // Programs for readers: each stands alone.
  if (second === 'discovery' && third === 'snippets') return 'src/discovery/snippets';
  return `src/${second.replace(/(-[a-z-]+)?\.ts$/, '')}`;
}

export type Import = {
  readonly file: string;
  readonly room: string;
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** The imported file of this repository; null for a package. */
  readonly target: string | null;
};

const { imports: ALIASES } = JSON.parse(readFileSync(`${rootPath}/package.json`, 'utf8')) as {
  imports: Record<string, string | { readonly default: string }>;
};

export function importsOf(file: string): { readonly imports: readonly Import[]; readonly computed: number } {
  const { imports, computed } = scanImports(readFileSync(`${rootPath}/${file}`, 'utf8'));
  const room = roomOf(file);
  return {
    imports: imports.map((found) => ({ file, room, ...found, target: targetOf(file, found.specifier) })),
    computed,
  };
}

function targetOf(file: string, specifier: string): string | null {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(file), specifier);
  for (const [alias, place] of Object.entries(ALIASES)) {
    if (typeof place !== 'string') {
      if (specifier === alias) return posix.normalize(place.default);
      continue;
    }
    const head = alias.slice(0, -1);
    if (specifier.startsWith(head)) return posix.join(place.slice(0, -1), specifier.slice(head.length));
  }
  return null;
}

/** Whether one word of a row's second column covers the import of a file. */
export function coversRoom(word: string, { target, typeOnly }: Import): boolean {
  if (target === null) return false;
  const [name = '', kind] = word.split(' ');
  if (kind === '(types)' && !typeOnly) return false;
  const place = name.startsWith('projections') ? name : `src/${name}`;
  const [head, tail, last] = place.split('/*');
  if (tail === undefined) return roomOf(target) === place;
  const inside = roomOf(target).startsWith(`${head}/`);
  return inside && (tail === '' || (last === undefined && target === `${roomOf(target)}${tail}.ts`));
}

/** Whether one word of a row's third column covers a package. */
export function coversPackage(word: string, specifier: string): boolean {
  if (word.endsWith('*')) return specifier.startsWith(word.slice(0, -1));
  return specifier === word || specifier.startsWith(`${word}/`);
}
