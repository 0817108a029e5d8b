// Turns a schema into a check. The schema is compiled if the runtime may generate code, and interpreted otherwise, as in a
// page whose content security policy forbids `eval`; the result is the same.
import type { Static, TSchema } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import { Value } from '@sinclair/typebox/value';

export function shapeCheck<T extends TSchema>(schema: T): (value: unknown) => value is Static<T> {
  try {
    const compiled = TypeCompiler.Compile(schema);
    return (value): value is Static<T> => compiled.Check(value);
  } catch {
    return (value): value is Static<T> => Value.Check(schema, value);
  }
}
