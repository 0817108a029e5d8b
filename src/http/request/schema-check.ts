// A schema as a guard: true or the list of faults. Nothing is coerced, filled in or dropped.
import { FormatRegistry, Kind, type Static, type TSchema } from '@sinclair/typebox';
import { TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler';
import { type InputFault, MAX_FAULTS } from './validation-error.ts';

// The parser that the target policy uses, so that an international host passes; Elysia's own pattern knows ASCII only.
FormatRegistry.Set('uri', (text) => URL.canParse(text));

export type SchemaCheck<S extends TSchema> = {
  readonly schema: S;
  readonly matches: (value: unknown) => value is Static<S>;
  readonly faults: (value: unknown) => InputFault[];
};

export function schemaCheck<S extends TSchema>(schema: S): SchemaCheck<S> {
  const compiled = TypeCompiler.Compile(schema);
  return {
    schema,
    matches: (value): value is Static<S> => compiled.Check(value),
    faults(value) {
      const faults = new Map<string, InputFault>();
      for (const error of compiled.Errors(value)) {
        // The first is the plainest: a missing property is also of the wrong type.
        if (!faults.has(error.path)) faults.set(error.path, { path: error.path, message: messageOf(error) });
        if (faults.size === MAX_FAULTS) break;
      }
      return [...faults.values()];
    },
  };
}

/** The pattern and format of a URL are told in words; any other fault of it, such as its length, as it is. */
function messageOf({ type, schema, message }: ValueError): string {
  if (type === ValueErrorType.StringMaxLength || type === ValueErrorType.StringMinLength) return message;
  const words = literalsOf(schema);
  if (words !== null) return `Expected one of ${words.join(', ')}`;
  if (schema.pattern === '^[hH][tT][tT][pP][sS]://' || schema.format === 'uri')
    return 'Expected an absolute HTTPS URL';
  return message;
}

/** The words of a union of literals; null for any other schema. */
function literalsOf(schema: TSchema): readonly string[] | null {
  const options: readonly TSchema[] = schema.anyOf ?? [];
  if (options.length === 0 || options.some((option) => option[Kind] !== 'Literal')) return null;
  return options.map((option) => String(option.const));
}
