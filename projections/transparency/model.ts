import { projectTransparency } from './project.ts';
import { transparencyQueries } from './query.ts';
import { transparencyCheckpoint, transparencyLeaves, transparencyTiles, transparencyTree } from './table.ts';

export const transparency = {
  version: 1,
  tables: [transparencyTree, transparencyTiles, transparencyLeaves, transparencyCheckpoint],
  project: projectTransparency,
  queries: transparencyQueries,
  needs: { tree: 'rows', tile: 'rows', leafIndex: 'rows', checkpoint: 'rows' },
} as const;
