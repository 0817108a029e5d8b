// Circles of imports among the files and folders of one folder.

type Joined = { readonly file: string; readonly target: string | null };
type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * One circle for each folder that has any, as `src/domain: events.ts → job → events.ts`. An import joins two entries, files
 * or folders, of the innermost folder that contains both files: a circle of files anywhere is a circle of entries somewhere.
 */
export function circlesOf(imports: readonly Joined[]): readonly string[] {
  const folders = new Map<string, Map<string, Set<string>>>();
  for (const { file, target } of imports) {
    if (target === null || target === file) continue;
    const [from, to] = [file.split('/'), target.split('/')];
    const depth = from.findIndex((part, at) => part !== to[at]);
    const entries = at(folders, from.slice(0, depth).join('/'), () => new Map<string, Set<string>>());
    at(entries, from[depth] ?? '', () => new Set<string>()).add(to[depth] ?? '');
  }
  return [...folders].flatMap(([folder, entries]) => {
    const circle = circleIn(entries);
    return circle === null ? [] : [`${folder}: ${circle.join(' → ')}`];
  });
}

function at<V>(map: Map<string, V>, key: string, fresh: () => V): V {
  const value = map.get(key) ?? fresh();
  map.set(key, value);
  return value;
}

/** The first circle, from one entry back to it; null if there is none. */
function circleIn(graph: Graph): readonly string[] | null {
  const free = new Set<string>();
  function from(entry: string, path: readonly string[]): readonly string[] | null {
    const begun = path.indexOf(entry);
    if (begun >= 0) return [...path.slice(begun), entry];
    if (free.has(entry)) return null;
    for (const next of graph.get(entry) ?? []) {
      const circle = from(next, [...path, entry]);
      if (circle !== null) return circle;
    }
    free.add(entry);
    return null;
  }
  for (const entry of graph.keys()) {
    const circle = from(entry, []);
    if (circle !== null) return circle;
  }
  return null;
}
