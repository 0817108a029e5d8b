// bun test/support/given/build-vectors.ts: writes the test vectors for verifiers into src/verify/vectors. They have the same bytes in every run;
// a test repeats it and compares them.
import { writeFileSync } from 'node:fs';
import { rootPath } from '#test/support/process/runtime.ts';
import { vectorFiles } from './vectors.ts';

for (const [name, text] of Object.entries(await vectorFiles()))
  writeFileSync(`${rootPath}/src/verify/vectors/${name}`, text);
