// The parts in which a rebuild builds rows beside each other: each has all events, and the rows of some of the keys.
import type { DomainEvent } from '#src/domain/events.ts';
import type { JudgedEvent, PlannedChange } from './fold.ts';
import type { Change, ModelRow, ReadModel } from './model.ts';
import { type TableShape, tableShapes } from './rows.ts';

export type Part = { readonly index: number; readonly of: number };

/** Of a service, and of a rebuild that has one worker. */
export const WHOLE: Part = { index: 0, of: 1 };

/** Id of the part's row in `projection`. */
export const headOf = ({ index, of }: Part): string => (of === 1 ? 'all' : `${index}/${of}`);

/** Ends the key of a sum that a part has added up. */
export const sumSuffix = (index: number): string => `\x1f${String(index).padStart(2, '0')}`;

type Planned = { readonly model: ReadModel; readonly sums: ReadonlyMap<string, string> };

export class PartPlan {
  /** The tables in which the part has rows. */
  readonly shapes: readonly TableShape[];
  readonly #part: Part;
  readonly #models: readonly Planned[];

  constructor(models: readonly ReadModel[], part: Part) {
    const alone = models.filter(({ split }) => split === 'none');
    const own = models.filter(
      (model) => model.split !== 'none' || alone.indexOf(model) % part.of === part.index,
    );
    this.#part = part;
    this.#models = own.map((model) => {
      const shapes = part.of === 1 ? [] : tableShapes([{ tables: model.sums ?? [] }]);
      return { model, sums: new Map(shapes.map(({ name, keyProperty }) => [name, keyProperty])) };
    });
    this.shapes = tableShapes(own);
  }

  /** Whether facts of the event can be in a row of this part. */
  judges({ data }: DomainEvent): boolean {
    const { of: parts, index } = this.#part;
    if (parts === 1) return true;
    const { jobId, decisionId } = data as { readonly jobId?: unknown; readonly decisionId?: unknown };
    return [jobId, decisionId].some((id) => typeof id === 'string' && partOf(id, parts) === index);
  }

  /** All changes of these events in rows of this part, in their order. */
  changes(events: readonly JudgedEvent[]): readonly PlannedChange[] {
    const { of: parts, index } = this.#part;
    // Plain loops: this runs for each event of a rebuild.
    const planned: PlannedChange[] = [];
    for (const { stream, position, event, facts } of events) {
      const { jobId } = event.data as { readonly jobId?: unknown };
      const isHome = parts === 1 || partOf(typeof jobId === 'string' ? jobId : stream, parts) === index;
      for (const { model, sums } of this.#models) {
        if (model.split === 'job' && !isHome) continue;
        for (const change of model.project(event, facts)) {
          if (model.split === 'key' && parts > 1 && partOf(change.key, parts) !== index) continue;
          const { table, key, apply } = this.#ofPart(change, sums.get(change.table));
          planned.push({ position, table, key, apply });
        }
      }
    }
    return planned;
  }

  /** A sum is a row for each part until they are added up. */
  #ofPart(change: Change, keyProperty: string | undefined): Change {
    if (keyProperty === undefined) return change;
    const key = change.key + sumSuffix(this.#part.index);
    const apply = (row: ModelRow | null) => {
      const after = change.apply(row);
      return after && { ...after, [keyProperty]: key };
    };
    return { table: change.table, key, apply };
  }
}

/** FNV-1a, 32 bits. */
function partOf(key: string, parts: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % parts;
}
