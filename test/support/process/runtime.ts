// How a test starts a script in a process of its own: under the runtime that runs the test.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../', import.meta.url);

/** The repository's folder, without a slash at its end. */
export const rootPath = fileURLToPath(root).replace(/\/$/, '');

export const runtimeName: 'bun' | 'deno' = 'deno' in process.versions ? 'deno' : 'bun';

/** An environment variable that names a binary of `bun run build:binary`: it is started in place of the source. */
export const BINARY = 'RELAY_TEST_BINARY';
const BINARY_ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'src/main.ts': ['serve'],
  'src/cli/relay.ts': [],
};

/**
 * Command and arguments for `spawn`, to run a script of this repository: the runtime's own binary (never npm's
 * wrapper, which does not pass signals on), and under Deno exactly the permissions of the script `start:deno`.
 * `script`: absolute, or relative to the repository (`src/main.ts`).
 */
export function runtimeCommand(
  script: string,
  args: readonly string[] = [],
): readonly [string, readonly string[]] {
  const binary = process.env[BINARY];
  const ofBinary = BINARY_ARGUMENTS[script];
  if (binary !== undefined && ofBinary !== undefined) return [binary, [...ofBinary, ...args]];
  const path = script.startsWith('/') ? script : `${rootPath}/${script}`;
  if (runtimeName === 'bun') return [process.execPath, [path, ...args]];
  return [process.execPath, ['run', '--no-lock', ...denoPermissions(), path, ...args]];
}

/** As the one definition has them: `start:deno` of package.json. */
export function denoPermissions(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  const flags = String(scripts['start:deno']).match(/--allow-[a-z]+(=\S+)?/g);
  if (flags === null) throw new Error('the script start:deno of package.json grants nothing');
  return flags;
}
