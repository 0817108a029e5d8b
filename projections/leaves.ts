// The leaves that events add to the transparency tree. The tree is read as the rows of a batch are, and the batch is written
// only over the version that was read: no two projectors number a leaf alike.
import { appendLeaf, isLeaf, leafData, type Tree } from '#src/domain/transparency/tree.ts';
import type { JudgedEvent, Rows } from './fold.ts';
import type { Row } from './model.ts';
import type { TableShape } from './rows.ts';
import { readTree } from './transparency/query.ts';

const TABLE = 'transparency_tree';
const KEY = 'all';

/**
 * The same events, each new leaf with its place in the tree. `shapes`: the tables that are written. `load`: the stored rows
 * of these keys. Leaves up to the position of the stored tree are in it already.
 */
export async function withLeaves(
  shapes: readonly TableShape[],
  events: readonly JudgedEvent[],
  load: (keys: ReadonlyMap<string, ReadonlySet<string>>) => Promise<Rows>,
): Promise<readonly JudgedEvent[]> {
  if (!shapes.some(({ name }) => name === TABLE) || !events.some(({ event }) => isLeaf(event))) return events;
  const stored = (await load(new Map([[TABLE, new Set([KEY])]]))).get(TABLE)?.get(KEY) ?? null;
  const after = stored?.position ?? '';
  let tree = treeOf(stored?.row ?? null);
  const grown: JudgedEvent[] = [];
  for (const judged of events) {
    const isNew = judged.position > after && isLeaf(judged.event);
    const data = isNew ? leafData(judged.event) : null;
    if (data === null) {
      grown.push(judged);
      continue;
    }
    const index = tree.size;
    const appended = appendLeaf(tree, data);
    tree = appended.tree;
    grown.push({ ...judged, facts: { ...judged.facts, leaf: { index, data, ...appended } } });
  }
  return grown;
}

function treeOf(row: Row | null): Tree {
  if (row === null) return readTree(null);
  const { size, edge } = row;
  if (typeof size !== 'number' || typeof edge !== 'string')
    throw new Error('the stored tree of the transparency log cannot be read');
  return readTree({ id: KEY, size, edge });
}
