import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, scanImports } from './parse-source.ts';

const found = (source: string) =>
  scanImports(source).imports.map(({ specifier, typeOnly }) => (typeOnly ? `type ${specifier}` : specifier));

test('scan: every form of import is found', () => {
  const source = `
    import 'a';
    import b from "b";
    import * as c from 'c'; import { d } from 'd'
    import e, { type E } from 'e';
    import {
      f, // from 'not-this'
      type F,
    } from 'f';
    export { g } from 'g';
    export * from 'h';
    export * as i from 'i';
    const j = await import('j');
    const k = require('k');
    const l = new Worker(new URL('./l.ts', import.meta.url)); const folder = new URL('../x', import.meta.url);
    type M = import('m').M;
    import type from 'n';
    const o = import.meta.resolve('o');
    const p = await import('p', { with: { type: 'json' } });
    import q from 'q' with { type: 'json' };
    const r = \`\${await import('r')} \${{ s: await import('s') }.s}\`;
  `;
  assert.deepEqual(found(source).sort(), [...'abcdefghi', './l.ts', ...'jkmnopqrs'].sort());
});

test('scan: type-only imports are marked', () => {
  const source = `
    import type { A } from 'a';
    import type B from 'b';
    import { type C, type D } from 'c';
    export type { E } from 'e';
    import { type F, g } from 'f';
    import type, { h } from 'h';
  `;
  assert.deepEqual(found(source), ['type a', 'type b', 'type c', 'type e', 'f', 'h']);
});

test('scan: imports with a computed specifier are counted', () => {
  const source = [
    'import(name);',
    "import('./a/' + name);",
    'import(`./$' + '{name}`);',
    'require(name);',
    "import('fine');",
  ];
  assert.equal(scanImports(source.join('\n')).computed, 4);
  assert.deepEqual(found(source.join('\n')), ['fine']);
});

test('scan: the text of a template is not code, its expressions are', () => {
  const code = codeOf('const a = `process.env.A $' + '{process.env.B} fetch()`; // process.env.C');
  assert.equal(code.match(/process\.env\.\w/g)?.join(), 'process.env.B');
  assert.doesNotMatch(code, /fetch/);
});
