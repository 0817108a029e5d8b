// Another release of the service and of the command line: every read model has the next version, so its rows are another
// generation. Without arguments it is `src/main.ts`, else `relay ARGS`.
import process from 'node:process';
import { READ_MODELS } from '#projections/registry.ts';

for (const model of READ_MODELS) Object.assign(model, { version: model.version + 1 });

await (process.argv.length > 2 ? import('#src/cli/relay.ts') : import('#src/main.ts'));
