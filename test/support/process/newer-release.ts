// A copy of the release that writes one version more: its jobs start with the next version of JobStarted, which only it
// reads, besides all that this release reads. Without arguments it is `src/main.ts`, else `relay ARGS`.
import process from 'node:process';
import { Type } from '@sinclair/typebox';
import { EVENTS } from '#src/domain/events.ts';

const { versions, written, upcast } = EVENTS.JobStarted;
const { v: _, ...members } = versions[written].properties;
const next = written + 1;
const schema = Type.Object({ v: Type.Literal(next), ...members }, { additionalProperties: false });
const same = (recorded: object) => recorded;
const older = Object.fromEntries(
  Object.keys(versions).map((v) => [v, (upcast as Record<string, unknown>)[v] ?? same]),
);
Object.assign(EVENTS.JobStarted, { versions: { ...versions, [next]: schema }, written: next, upcast: older });

// The codec reads the catalogue when it is loaded.
await (process.argv.length > 2 ? import('#src/cli/relay.ts') : import('#src/main.ts'));
