// What is published of a record: the members that the schema of its answer declares, at every depth. A member that is
// added to the record is not published with it.
import type { Static, TSchema } from '@sinclair/typebox';

type Readable<T> = T extends readonly (infer Item)[]
  ? readonly Readable<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Readable<T[K]> }
    : T;

/** Schemas of objects and arrays are followed, nullable ones too; any other value is published as it is. */
export function shownBy<S extends TSchema>(schema: S): (record: Readable<Static<S>>) => Static<S> {
  return pickOf(schema) as (record: Readable<Static<S>>) => Static<S>;
}

function pickOf(schema: TSchema): (value: unknown) => unknown {
  if (schema.type === 'array') {
    const each = pickOf(schema.items);
    return (values) => (values as readonly unknown[]).map(each);
  }
  const [some, none, ...more]: readonly TSchema[] = schema.anyOf ?? [];
  if (some !== undefined && none?.type === 'null' && more.length === 0) {
    const pick = pickOf(some);
    return (value) => (value === null ? null : pick(value));
  }
  if (schema.type !== 'object' || schema.properties === undefined) return (value) => value;
  const members = Object.entries<TSchema>(schema.properties).map(([name, of]) => [name, pickOf(of)] as const);
  return (record) => {
    const shown: Record<string, unknown> = {};
    for (const [name, pick] of members) {
      const value = (record as Readonly<Record<string, unknown>>)[name];
      if (value !== undefined) shown[name] = pick(value);
    }
    return shown;
  };
}
