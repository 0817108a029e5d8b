// The room of a file, and whether an entry of the import table allows an import.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { rootPath } from '#test/support/process/runtime.ts';
import { scanImports } from './parse-source.ts';

/** `src/adapters/quota`, `projections/job`, `projections` for its own files, `src/config` for config-values.ts too. */
export function roomOf(file: string): string {
  const [top = '', second = '', third = '', ...rest] = file.split('/');
  if (top === 'projections') return third === '' ? 'projections' : `projections/${second}`;
  if (top !== 'src') return top;
  if (second === 'adapters' && rest.length > 0) return `src/adapters/${third}`;
  // These use the disk.
  if (second === 'lib' && third === 'files') return 'src/lib/files';
  // Streams, workers and conditions: also for the projector.
  if (second === 'usecases' && third === 'process') return 'src/usecases/process';
  // Complete programs for readers.
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
  for (const [alias, path] of Object.entries(ALIASES)) {
    // One module with a file for each runtime.
    if (typeof path !== 'string') {
      if (specifier === alias) return posix.normalize(path.default);
      continue;
    }
    const head = alias.slice(0, -1);
    if (specifier.startsWith(head)) return posix.join(path.slice(0, -1), specifier.slice(head.length));
  }
  return null;
}

/** Whether one entry of a row's second column allows the import of a file. */
export function coversRoom(entry: string, { target, typeOnly }: Import): boolean {
  if (target === null) return false;
  const [name = '', kind] = entry.split(' ');
  if (kind === '(types)' && !typeOnly) return false;
  const path = name.startsWith('projections') ? name : `src/${name}`;
  const [head, tail, last] = path.split('/*');
  if (tail === undefined) return roomOf(target) === path;
  const inside = roomOf(target).startsWith(`${head}/`);
  return inside && (tail === '' || (last === undefined && target === `${roomOf(target)}${tail}.ts`));
}

/** Whether one entry of a row's third column allows a package. */
export function coversPackage(entry: string, specifier: string): boolean {
  if (entry.endsWith('*')) return specifier.startsWith(entry.slice(0, -1));
  return specifier === entry || specifier.startsWith(`${entry}/`);
}
