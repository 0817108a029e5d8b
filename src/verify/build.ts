// bun src/verify/build.ts [folder]: makes the verifier that is imported and the script that the pages run, into
// src/verify/built. The same sources give the same bytes; a test builds them again and compares.
import { ReceiptPayload } from '../domain/receipt/payload.ts';
import { declarations } from './declarations.ts';

/** First line of what people read. */
const HEAD = '// Made by src/verify/build.ts: not to be edited.\n';
const here = new URL('.', import.meta.url).pathname;
const root = new URL('../..', import.meta.url).pathname;
const folder = `${process.argv[2] ?? `${here}built`}/`;

/** The domain's schemas become plain checks: no schema package, and no code made at run time. */
const leanShapes: Bun.BunPlugin = {
  name: 'lean-shapes',
  setup(build) {
    const path = `${here}lean-shapes.ts`;
    build.onResolve({ filter: /^@sinclair\/typebox$|\/shape-check\.ts$/ }, () => ({ path }));
  },
};

async function bundle(entry: string, minify: boolean): Promise<string> {
  const made = await Bun.build({
    entrypoints: [`${here}${entry}`],
    root,
    target: 'browser',
    format: 'esm',
    minify,
    plugins: [leanShapes],
  });
  const [output, ...more] = made.outputs;
  if (output === undefined || more.length > 0) throw new Error(`${entry}: not one file`);
  return output.text();
}

const source = (path: string) => Bun.file(`${root}src/${path}`).text();
const outputs = {
  'verify.js': `${HEAD}${await bundle('verifier.ts', false)}`,
  'verify.d.ts': `${HEAD}${await declarations(source, ReceiptPayload)}`,
  'page.js': await bundle('page/main.ts', true),
};
for (const [name, text] of Object.entries(outputs)) await Bun.write(`${folder}${name}`, text);
