// The import table of src/README.md, parsed: the documented table is the one that is enforced.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { rootPath } from '#test/support/process/runtime.ts';

export type Row = {
  /** A room; `*` is each folder at that path, separate from the others. */
  readonly room: string;
  /** Rooms; after a `*` a file of each room may follow; `(types)` permits type imports only. */
  readonly rooms: readonly string[];
  /** Package names; `node:*` is every module of the runtime. */
  readonly packages: readonly string[];
};

export const IMPORT_TABLE: readonly Row[] = parseTable(readFileSync(`${rootPath}/src/README.md`, 'utf8'));

function parseTable(page: string): Row[] {
  const lines = page.split('\n');
  const head = lines.findIndex((line) =>
    /^\|\s*room\s*\|\s*may import rooms\s*\|\s*may import packages\s*\|$/.test(line),
  );
  assert.ok(head >= 0, 'src/README.md has no import table');
  const end = lines.findIndex((line, i) => i > head && !line.startsWith('|'));
  return lines.slice(head + 2, end === -1 ? undefined : end).map((line) => {
    const [, room = '', rooms = '', packages = ''] = line
      .split('|')
      .map((cell) => cell.replaceAll('`', '').trim());
    const names = (cell: string) => (cell === '—' ? [] : cell.split(',').map((name) => name.trim()));
    return { room, rooms: names(rooms), packages: names(packages) };
  });
}
