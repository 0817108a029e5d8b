// The statements of the read models, executed on maps: each is recognised by its text, and an unknown one throws.
import { READ_MODELS } from '#projections/registry.ts';
import { type TableShape, tableShapes } from '#projections/rows.ts';

const SHAPES = new Map(tableShapes(READ_MODELS).map((shape) => [shape.name, shape]));

export type Row = Readonly<Record<string, unknown>>;
export type Tables = ReadonlyMap<string, ReadonlyMap<string, Row>>;

type Head = {
  readonly version: number;
  readonly position: string | null;
  readonly event: string | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly loss: string | null;
};

export type Schema = { readonly head: Head; readonly tables: Tables };

type GenerationRow = {
  readonly schema: string;
  readonly generation: string;
  readonly log: string;
  readonly state: string;
};

export type State = {
  readonly generations: readonly GenerationRow[];
  readonly schemas: ReadonlyMap<string, Schema>;
};

export const EMPTY: State = { generations: [], schemas: new Map() };

/** What a statement reads and changes; `path`: the schema of unqualified names. */
export type Draft = { state: State; path: string | null };

export const isWriting = (text: string): boolean => recognised(text).isWriting;

// ── statements ──────────────────────────────────────────────────────────────────────────────────────────

type Executor = (it: {
  draft: Draft;
  params: readonly unknown[];
  match: RegExpMatchArray;
  named: () => string;
}) => Row[];

/** Rows are objects whose values are in the order of the statement's columns. */
export function execute(draft: Draft, text: string, params: readonly unknown[], named: () => string): Row[] {
  const { known } = recognised(text);
  if (known === null) throw new TypeError(`the simulated store does not know this statement: ${text}`);
  return known.executor({ draft, params, match: known.match, named });
}

type Recognised = {
  readonly isWriting: boolean;
  /** null: unknown. */
  readonly known: { readonly executor: Executor; readonly match: RegExpMatchArray } | null;
};

/** By their text: few texts, many executions. */
const seen = new Map<string, Recognised>();

function recognised(text: string): Recognised {
  const before = seen.get(text);
  if (before !== undefined) return before;
  const known = STATEMENTS.map(([pattern, executor]) => ({ executor, match: text.match(pattern) })).find(
    (tried): tried is NonNullable<Recognised['known']> => tried.match !== null,
  );
  const isWriting = /^\s*(insert|update|delete|drop|alter|create)|project_batch/.test(text);
  const made = { isWriting, known: known ?? null };
  seen.set(text, made);
  return made;
}

function schemaOf(draft: Draft, name: string | null = draft.path): Schema {
  const schema = draft.state.schemas.get(name ?? '');
  if (schema === undefined) throw new Error(`the schema ${name} does not exist`);
  return schema;
}

function setSchema(draft: Draft, name: string, schema: Schema | null): void {
  const schemas = new Map(draft.state.schemas);
  schemas.delete(name);
  if (schema !== null) schemas.set(name, schema);
  draft.state = { ...draft.state, schemas };
}

const parsed = (value: unknown) => JSON.parse(String(value));
const NOTHING: Executor = () => [];

const STATEMENTS: readonly (readonly [RegExp, Executor])[] = [
  [
    /^select version, position, event, counts, loss from projection/,
    ({ draft }) => [{ ...schemaOf(draft).head }],
  ],
  [
    /^select name, stored from load_rows/,
    ({ draft, params }) => {
      const wanted: Record<string, readonly string[]> = parsed(params[0]);
      const { tables } = schemaOf(draft);
      return Object.entries(wanted).flatMap(([name, keys]) =>
        keys.flatMap((key) => {
          const stored = tables.get(name)?.get(key);
          return stored === undefined ? [] : [{ name, stored }];
        }),
      );
    },
  ],
  [/^select project_batch\(/, ({ draft, params }) => [{ written: projectBatch(draft, params) }]],
  [
    /^select exists \(select from/,
    ({ draft }) => {
      schemaOf(draft);
      return [{}];
    },
  ],
  [
    /^select name, \(pg_relation_size/,
    ({ draft, params }) => {
      const schema = draft.state.schemas.get(String(params[0]));
      const names: readonly string[] = parsed(params[1]);
      // A table that has no rows has no pages.
      const pages = (name: string) => ((schema?.tables.get(name)?.size ?? 1) === 0 ? 0 : 1);
      return names.map((name) => ({ name, pages: schema === undefined ? null : pages(name) }));
    },
  ],
  [
    /^select count\(\*\)::int as n from "(\w+)"/,
    ({ draft, match }) => [{ n: schemaOf(draft).tables.get(match[1] ?? '')?.size ?? 0 }],
  ],
  [
    /^select "schema" from "read_model_generations" where "generation" = \$1 and "state" = 'current'/,
    ({ draft, params }) =>
      draft.state.generations
        .filter(({ generation, state }) => generation === params[0] && state === 'current')
        .map(({ schema }) => ({ schema })),
  ],
  [
    /^select pg_advisory_xact_lock|^select set_config|^create (table|index|function|trigger|unique)/i,
    NOTHING,
  ],
  [/^select 'relay_'/, ({ named }) => [{ schema: named(), path: 'public' }]],
  [
    /^insert into "read_model_generations"/,
    ({ draft, params: [schema, generation, log, state] }) => {
      const row = {
        schema: String(schema),
        generation: String(generation),
        log: String(log),
        state: String(state),
      };
      draft.state = { ...draft.state, generations: [...draft.state.generations, row] };
      return [];
    },
  ],
  [
    /^create schema "(\w+)"/,
    ({ draft, match }) => {
      const tables = new Map([...SHAPES.keys()].map((name) => [name, new Map<string, Row>()]));
      const head = { version: 0, position: null, event: null, counts: {}, loss: null };
      setSchema(draft, match[1] ?? '', { head, tables });
      return [];
    },
  ],
  [/^insert into projection/, NOTHING],
  [
    /^update "read_model_generations" set "state" = \$1, "schema" = \$2/,
    ({ draft, params: [state, name, schema] }) => {
      const isIts = (row: GenerationRow) => row.schema === schema;
      const exists = draft.state.schemas.has(String(schema));
      const moved = draft.state.generations.filter(isIts).map(() => ({ exists }));
      const generations = draft.state.generations.map((row) =>
        isIts(row) ? { ...row, state: String(state), schema: String(name) } : row,
      );
      draft.state = { ...draft.state, generations };
      return moved;
    },
  ],
  [
    /^alter schema "(\w+)" rename to "(\w+)"/,
    ({ draft, match: [, from = '', to = ''] }) => {
      const schema = schemaOf(draft, from);
      setSchema(draft, from, null);
      setSchema(draft, to, schema);
      return [];
    },
  ],
  [
    /^select "schema" from "read_model_generations" where "log" = \$1 and "schema" <> \$2/,
    ({ draft, params }) =>
      draft.state.generations
        .filter(({ log, schema }) => log === params[0] && schema !== params[1])
        .map(({ schema }) => ({ schema })),
  ],
  [
    /^select note from "(\w+)"\.transparency_checkpoint/,
    ({ draft, match }) =>
      [
        ...(schemaOf(draft, match[1] ?? '')
          .tables.get('transparency_checkpoint')
          ?.values() ?? []),
      ].map(({ note }) => ({ note })),
  ],
  [/^update "read_model_generations" set "used_at"/, NOTHING],
  [
    /^delete from "read_model_generations"/,
    ({ draft, params: [keep, , isLost] }) => {
      const isGone = ({ schema, state }: GenerationRow) =>
        schema !== keep && isLost === true && (state === 'lost' || state === 'incomplete');
      const gone = draft.state.generations.filter(isGone);
      draft.state = { ...draft.state, generations: draft.state.generations.filter((row) => !isGone(row)) };
      return gone.map(({ schema }) => ({ schema }));
    },
  ],
  [
    /^drop schema if exists "(\w+)"/,
    ({ draft, match }) => {
      setSchema(draft, match[1] ?? '', null);
      return [];
    },
  ],
  [
    /^select "job_id" from "running_jobs" order by/,
    ({ draft, params: [limit] }) =>
      [...(schemaOf(draft).tables.get('running_jobs')?.values() ?? [])]
        .sort((a, b) => (`${a.started_at} ${a.job_id}` < `${b.started_at} ${b.job_id}` ? -1 : 1))
        .slice(0, Number(limit))
        .map(({ job_id }) => ({ job_id })),
  ],
  [
    /^select "schedule_id" from \(select .* row_number\(\) over .* order by "turn", "turns"."due_at" limit/,
    ({ draft, params }) => {
      const [until, limit] = [String(params.at(-3)), Number(params.at(-1))];
      const due = runsDue(draft, until, params);
      const isFunded = ({ state }: Row) => state === 'funded';
      const turns = new Map<unknown, number>();
      return [...due.filter((row) => !isFunded(row)), ...due.filter(isFunded)]
        .map((row) => {
          const turn = (turns.get(row.client) ?? 0) + 1;
          turns.set(row.client, turn);
          return { row, turn };
        })
        .filter(({ row }) => isFunded(row))
        .sort((a, b) => a.turn - b.turn || (String(a.row.due_at) < String(b.row.due_at) ? -1 : 1))
        .slice(0, limit)
        .map(({ row }) => ({ schedule_id: row.schedule_id }));
    },
  ],
  [
    /^select "schedule_id" from "schedule_runs" where .* order by "schedule_runs"."due_at" limit/,
    ({ draft, params }) => {
      const [until, limit] = [String(params.at(-2)), Number(params.at(-1))];
      const due = runsDue(draft, until, params);
      return due.slice(0, limit).map(({ schedule_id }) => ({ schedule_id }));
    },
  ],
  [
    /^select "schedule_id" from "schedules" where/,
    ({ draft, params: [wanted, until, limit] }) =>
      [...(schemaOf(draft).tables.get('schedules')?.values() ?? [])]
        .filter(
          ({ status, next_due_at }) =>
            status === wanted && next_due_at !== null && String(next_due_at) <= String(until),
        )
        .slice(0, Number(limit))
        .map(({ schedule_id }) => ({ schedule_id })),
  ],
  [
    /^select ([\w", ]+) from "(open_payments|unconfirmed_charges|refused_payments|payment_sums|chain_books)"(?: where "\w+"\."(\w+)" >= .*)? order by (?:"\w+"\.)?"(\w+)".*?( limit .*)?$/,
    ({ draft, params, match: [, list = '', table = '', since, order = '', limit] }) => {
      const columns = list.split(',').map((column) => column.trim().replaceAll('"', ''));
      return [...(schemaOf(draft).tables.get(table)?.values() ?? [])]
        .filter((row) => since === undefined || String(row[since]) >= String(params[0]))
        .sort((a, b) => ((a[order] ?? '') < (b[order] ?? '') ? -1 : 1))
        .slice(0, limit === undefined ? undefined : Number(params.at(-1)))
        .map((row) => Object.fromEntries(columns.map((column) => [column, row[column] ?? null])));
    },
  ],
  [
    /^select ([\w", ]+) from "(transparency_\w+)"(?: where "\w+"\."(\w+)" (?:in|=) .*)?$/,
    ({ draft, params, match: [, list = '', table = '', key] }) => {
      const columns = list.split(',').map((column) => column.trim().replaceAll('"', ''));
      const rows = [...(schemaOf(draft).tables.get(table)?.values() ?? [])];
      return rows
        .filter((row) => key === undefined || params.includes(row[key]))
        .map((row) => Object.fromEntries(columns.map((column) => [column, row[column] ?? null])));
    },
  ],
];

/** Runs of these states, the earliest first. */
const runsDue = (draft: Draft, until: string, states: readonly unknown[]): readonly Row[] =>
  [...(schemaOf(draft).tables.get('schedule_runs')?.values() ?? [])]
    .filter(({ state, due_at }) => states.includes(state) && String(due_at) <= until)
    .sort((a, b) => (String(a.due_at) < String(b.due_at) ? -1 : 1));

// ── one batch, as `project_batch` writes it ────────────────────────────────────────────────────────────

function projectBatch(
  draft: Draft,
  [expected, position, event, counts, mark, doc]: readonly unknown[],
): boolean {
  const { path } = draft;
  const { head, tables } = schemaOf(draft);
  if (head.version !== Number(expected) || path === null) return false;
  const next = new Map(tables);
  const changes: Record<string, string> = parsed(doc);
  for (const [kind, text] of Object.entries(changes)) {
    const name = kind.replace(/^[+-]/, '');
    const shape = SHAPES.get(name);
    if (shape === undefined) throw new Error(`there is no table ${name}`);
    const rows = new Map(next.get(name));
    if (kind.startsWith('-')) for (const key of parsed(text)) rows.delete(key);
    else
      for (const line of text.split(`\x1e${mark}`)) {
        const row = rowOf(shape, line.split(`\x1f${mark}`), String(mark));
        const key = String(row[shape.key]);
        if (kind.startsWith('+') && rows.has(key)) throw new Error(`${name} has a row ${key} already`);
        rows.set(key, row);
      }
    next.set(name, rows);
  }
  const after = {
    version: head.version + 1,
    position: String(position),
    event: String(event),
    counts: parsed(counts),
    loss: head.loss,
  };
  setSchema(draft, path, { head: after, tables: next });
  return true;
}

const rowOf = ({ columns }: TableShape, cells: readonly string[], mark: string): Row =>
  Object.fromEntries(columns.map(({ name, type }, n) => [name, cellValue(cells[n] ?? '', type, mark)]));

function cellValue(cell: string, type: string, mark: string): unknown {
  if (cell === `\x1d${mark}`) return null;
  if (type.endsWith('[]')) return cell === '{}' ? [] : cell.slice(1, -1).split(',').map(Number);
  if (type.startsWith('json')) return JSON.parse(cell);
  if (type === 'boolean') return cell === 'true';
  return type === 'integer' || type === 'bigint' ? Number(cell) : cell;
}
