// Where the time of a call goes: self time of a V8-format CPU profile, by room of this repository and by package.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootPath } from '#test/support/runtime.ts';

type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  /** µs since the last sample. */
  readonly timeDeltas: readonly number[];
};

/** Of a sample. Bun samples every millisecond, and not while it waits: the next delta contains the wait. */
const LONGEST_US = 2000;

export function timeByRoom(directory: string): string {
  const [file] = globSync('*.cpuprofile', { cwd: directory });
  if (file === undefined) throw new Error('the service wrote no CPU profile');
  const { nodes, samples, timeDeltas }: Profile = JSON.parse(readFileSync(join(directory, file), 'utf8'));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  // A native function counts for the code that called it.
  const roomAt = (id: number | undefined): string => {
    const node = id === undefined ? undefined : byId.get(id);
    if (node === undefined) return 'runtime';
    const { url, functionName } = node.callFrame;
    if (/^\((idle|program|root)\)$/.test(functionName)) return 'idle';
    return url === '' ? roomAt(parents.get(node.id)) : roomOf(url);
  };
  const rooms = new Map(nodes.map(({ id }) => [id, roomAt(id)]));
  const times = new Map<string, number>();
  samples.forEach((id, n) => {
    const room = rooms.get(id) ?? 'unknown';
    times.set(room, (times.get(room) ?? 0) + Math.min(timeDeltas[n] ?? 0, LONGEST_US));
  });
  times.delete('idle');
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 25)
    .map(([room, time]) => `${((100 * time) / total).toFixed(1).padStart(5)} %  ${room}`)
    .join('\n');
}

function roomOf(url: string): string {
  const path = url.replace(/^file:\/\//, '');
  const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)(?!.*node_modules)/.exec(path) ?? [];
  if (name !== undefined) return name;
  if (!path.startsWith(rootPath)) return path;
  const parts = path.slice(rootPath.length + 1).split('/');
  return parts.slice(0, parts[1] === 'adapters' || parts[1] === 'usecases' ? 3 : 2).join('/');
}
