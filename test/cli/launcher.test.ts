// The package's `relay` under Node: it finds the Bun that is installed beside it, and passes everything on.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { ASSETS } from '#src/assets.ts';
import { needsNode } from '#test/support/chain/requirements.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const needs = needsNode(20);
const folder = testFolder('cli-launcher');
const BUN = join(rootPath, 'node_modules/bun/bin/bun.exe');
const { stdout: nodePath } = spawnSync('node', ['-p', 'process.execPath'], { encoding: 'utf8' });
/** No other program is on PATH. */
const ALONE = { PATH: join(folder, 'empty') };

const PROGRAM = `
if (process.argv[2] === 'wait') {
  process.on('SIGTERM', () => process.exit(7));
  console.log('waiting');
  setInterval(() => {}, 1000);
} else {
  console.log(JSON.stringify([process.versions.bun, process.argv.slice(2), await Bun.stdin.text()]));
  process.exitCode = 3;
}
`;

/** An installation whose command line is `PROGRAM`. Returns the launcher's path. */
function installed(name: string, bun: Readonly<Record<string, 'program' | 'placeholder'>>): string {
  const modules = join(folder, name, 'node_modules');
  const cli = join(modules, 'webhook-relay/src/cli');
  mkdirSync(cli, { recursive: true });
  cpSync(join(rootPath, 'src/cli/launcher.mjs'), join(cli, 'launcher.mjs'));
  writeFileSync(join(cli, 'relay.ts'), PROGRAM);
  for (const [path, kind] of Object.entries(bun)) {
    const file = join(modules, path);
    mkdirSync(dirname(file), { recursive: true });
    if (path.startsWith('bun/')) writeFileSync(join(modules, 'bun/package.json'), '{"name":"bun"}');
    if (kind === 'program') symlinkSync(BUN, file);
    else writeFileSync(file, 'throw "the install script was not run"');
  }
  return join(cli, 'launcher.mjs');
}

const LAYOUTS = {
  'as installed': { 'bun/bin/bun.exe': 'program' },
  'install scripts were not run': { 'bun/bin/bun.exe': 'placeholder', '@oven/bun-any/bin/bun': 'program' },
} as const;

describe('the launcher', needs, () => {
  for (const [name, bun] of Object.entries(LAYOUTS)) {
    test(`${name}: arguments, input, output and exit code pass through, without Bun on PATH`, () => {
      const launcher = installed(name, bun);
      const args = [launcher, 'a', '--b', 'c d'];
      const { status, stdout, stderr } = spawnSync(nodePath.trim(), args, {
        env: ALONE,
        input: 'input',
        encoding: 'utf8',
      });
      assert.equal(stderr, '');
      const [version, ...passed] = JSON.parse(stdout);
      assert.ok(version);
      assert.deepEqual([status, ...passed], [3, ['a', '--b', 'c d'], 'input']);
    });
  }

  test('a signal ends the command, whose exit code is returned', async () => {
    const launcher = installed('signal', LAYOUTS['as installed']);
    const child = spawn(nodePath.trim(), [launcher, 'wait'], {
      env: ALONE,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [7, null]);
  });

  test('without any Bun it states what is missing: exit 2', () => {
    const { status, stderr } = spawnSync(nodePath.trim(), [installed('none', {})], {
      env: ALONE,
      encoding: 'utf8',
    });
    assert.equal(status, 2);
    assert.match(stderr, /^relay: it runs with Bun, which is not installed/);
  });

  test('in this project it is the command line, and what is packed has every file that ships', () => {
    const launcher = join(rootPath, 'src/cli/launcher.mjs');
    const { stdout } = spawnSync(nodePath.trim(), [launcher, '--version'], { env: ALONE, encoding: 'utf8' });
    assert.match(stdout, /^\d+\.\d+\.\d+/);
    const { bin, files } = JSON.parse(readFileSync(join(rootPath, 'package.json'), 'utf8'));
    assert.equal(join(rootPath, bin.relay), launcher);
    const isPacked = (path: string) =>
      files.some((one: string) => path === one || path.startsWith(`${one}/`)) &&
      !files.some((one: string) => one.startsWith('!') && path.startsWith(one.slice(1)));
    const needed = ['src/cli/launcher.mjs', 'src/main.ts', 'projections/registry.ts', 'LICENSE', ...ASSETS];
    assert.deepEqual(
      needed.filter((path) => !isPacked(path)),
      [],
    );
    assert.equal(isPacked('test/run.ts'), false);
  });
});
