// Every file that the program reads ships with the binary.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ASSETS, assetPath, builtCommit } from '#src/assets.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const SOURCES = globSync(['src/**/*.ts', 'projections/**/*.ts'], { cwd: rootPath }).filter(
  (file) => file !== 'src/assets.ts' && !file.startsWith('src/verify/built/'),
);
const read = (file: string) => readFileSync(`${rootPath}/${file}`, 'utf8');
const shipped = globSync(ASSETS, { cwd: rootPath });

test('assets: each path that is read is among those that ship', () => {
  const paths = SOURCES.flatMap((file) =>
    [...read(file).matchAll(/\basset(?:Text|Bytes|Path)\(\s*['`]([^'`]+)['`]/g)].map(([, path = '']) => path),
  );
  assert.ok(paths.length >= 6, `${paths.length} paths`);
  const missing = paths.filter((path) => {
    const [fixed = ''] = path.split('${');
    return !shipped.some((one) => one === path || one.startsWith(path === fixed ? `${path}/` : fixed));
  });
  assert.deepEqual(missing, []);
});

test('assets: no other file is read beside the code', () => {
  // One builds what ships; the paid demo finds the chain's program in a package.
  const others = ['src/demo/payments/anvil-process.ts', 'src/verify/build.ts'];
  assert.deepEqual(
    SOURCES.filter((file) =>
      /import\.meta\.(url|dirname|filename|resolve|dir|path)\b/.test(read(file)),
    ).sort(),
    others,
  );
});

test('assets: the source has no commit, and its paths are those of the project', () => {
  assert.equal(builtCommit(), null);
  assert.equal(assetPath('migrations'), `${rootPath}/migrations`);
});
