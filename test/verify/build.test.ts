// The built files match the sources in every checkout, and are safe to load in a page.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PACKAGED } from '#src/verify/package.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('verify-build');

const builtText = (name: string) => readFileSync(join(rootPath, 'src/verify/built', name), 'utf8');

test('another checkout builds the same bytes: after a change of the verifier, run `bun run build:verify`', () => {
  const copy = join(folder, 'elsewhere', 'checkout');
  for (const part of [
    'src/lib',
    'src/domain',
    'src/ports',
    'src/client',
    'src/buyer',
    'src/verify',
    'package.json',
    'tsconfig.json',
    'LICENSE',
  ])
    cpSync(join(rootPath, part), join(copy, part), { recursive: true });
  // A bundled package is copied: the path of a link's target would be part of the bundle.
  cpSync(join(rootPath, 'node_modules/@noble'), join(copy, 'node_modules/@noble'), { recursive: true });
  symlinkSync(join(rootPath, 'node_modules/@sinclair'), join(copy, 'node_modules/@sinclair'));
  const output = join(folder, 'made');
  const bun = join(rootPath, 'node_modules/bun/bin/bun.exe');
  const { status, stderr } = spawnSync(bun, ['src/verify/build.ts', output], { cwd: copy, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const names = readdirSync(output).sort();
  assert.deepEqual(names, readdirSync(join(rootPath, 'src/verify/built')).sort());
  assert.deepEqual(names, [...PACKAGED, 'package.json', 'page.js'].sort());
  const stale = names.filter((name) => readFileSync(join(output, name), 'utf8') !== builtText(name));
  assert.deepEqual(stale, []);
});

test('the built files evaluate no text as code or markup, load nothing, and are small', () => {
  for (const name of ['page.js', 'verify.js']) {
    const text = builtText(name);
    const forbidden =
      /\beval\b|\bFunction\b|\bimport\s*[("'{*]|\bimport\s+\w|\bfrom\s*["']|\brequire\b|(?:https?|wss?):\/\//;
    assert.equal(forbidden.exec(text)?.[0], undefined, name);
    assert.doesNotMatch(
      text,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|localStorage|cookie/,
    );
    assert.ok(text.length < 80_000, `${name}: ${text.length} bytes`);
  }
  // The importable file makes no requests and uses no page or runtime API.
  assert.doesNotMatch(
    builtText('verify.js'),
    /\bfetch\b|\bdocument\.(?:create|get|query|body)|\bwindow\b|XMLHttpRequest|\bprocess\.|\bBuffer\b/,
  );
});
