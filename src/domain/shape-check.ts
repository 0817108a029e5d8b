// A schema as a check. Compiled where the runtime may make code; interpreted where it may not, as in a page whose
// content security policy forbids `eval`: the verifier runs there too, and says the same.
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
