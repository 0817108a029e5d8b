// Builds the binary: the runtime, the program and the files that ship with it, in one file. `bun run build:binary
// [--out FILE] [--commit HASH]`; by default build/relay, of the commit that is checked out. It contains no anvil: `relay
// demo --paid` needs the source.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { ASSETS, COMMIT_FILE } from '#src/assets.ts';

const root = join(import.meta.dirname, '..');
const entry = join(root, 'src/cli/relay.ts');

const { values: options } = parseArgs({
  options: { out: { type: 'string', default: join(root, 'build/relay') }, commit: { type: 'string' } },
});

/** These packages read files beside their own modules, whose address in the binary is that of the binary. */
const READERS = /\/(@electric-sql\/pglite\/dist\/[\w-]+\.js|tiny-secp256k1\/lib\/wasm_path\.js)$/;
const PACKAGE_FILES = 'packages/';
const OF_PACKAGES = [
  ['@electric-sql/pglite', 'pglite.data'],
  ['@electric-sql/pglite', 'pglite.wasm'],
  ['@electric-sql/pglite', 'initdb.wasm'],
  ['tiny-secp256k1', 'secp256k1.wasm'],
] as const;

/** Content of each embedded file, by its path below the root. */
function embedded(): ReadonlyMap<string, string | Uint8Array<ArrayBuffer>> {
  const read = (path: string) => Uint8Array.from(readFileSync(path));
  const assets = globSync(ASSETS, { cwd: root }).sort();
  const beside = (name: string) => dirname(createRequire(entry).resolve(name));
  return new Map<string, string | Uint8Array<ArrayBuffer>>([
    ...assets.map((path) => [path, read(join(root, path))] as const),
    ...OF_PACKAGES.map(
      ([name, file]) => [PACKAGE_FILES + file, read(join(beside(name).replace(/\/cjs$/, ''), file))] as const,
    ),
    [COMMIT_FILE, `${options.commit ?? commitOf(root)}\n`],
  ]);
}

function commitOf(folder: string): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  return git('rev-parse', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '-dirty');
}

const files = embedded();
/** Imports every embedded file, then the program: what nothing imports is not in the binary. */
const START = 'binary:start';
const source = [
  ...[...files.keys()].map((path) => `import ${JSON.stringify(`binary:${path}`)} with { type: 'file' };`),
  `import ${JSON.stringify(entry)};`,
].join('\n');

const built = await Bun.build({
  entrypoints: [START],
  root,
  target: 'bun',
  format: 'esm',
  // Parsed in advance: a command starts in 0.1 s instead of 0.35 s.
  bytecode: true,
  minify: { syntax: true, whitespace: true },
  naming: { asset: '[dir]/[name].[ext]' },
  compile: { outfile: options.out },
  plugins: [
    {
      name: 'files of the binary',
      setup(build) {
        build.onResolve({ filter: /^binary:/ }, ({ path }) => ({
          path: join(root, path.slice('binary:'.length)),
          namespace: 'binary',
        }));
        build.onLoad({ filter: READERS }, async ({ path }) => ({
          contents: (await Bun.file(path).text()).replaceAll(
            'import.meta.url',
            `new URL('${PACKAGE_FILES}', import.meta.url).href`,
          ),
          loader: 'js',
        }));
        build.onLoad({ filter: /.*/, namespace: 'binary' }, ({ path }) => {
          const name = path.slice(root.length + 1);
          const contents = files.get(name);
          return contents === undefined ? { contents: source, loader: 'ts' } : { contents, loader: 'file' };
        });
      },
    },
  ],
});
if (!built.success) throw new AggregateError(built.logs, 'the binary was not built');
const megabytes = (statSync(options.out).size / 1e6).toFixed(1);
process.stdout.write(`${basename(options.out)}: ${megabytes} MB, ${files.size} files embedded\n`);
