// What is wrong with an input, place by place, as `details` of a 400 lists it: bodies by their schema, query parameters
// by their bounds. Nothing is coerced, filled in or dropped.
import { Kind, type Static, type TSchema } from '@sinclair/typebox';
import { TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler';
import { type RefusalCode, type Refused, refused } from '#src/domain/refusal.ts';

/** `path`: JSON pointer (RFC 6901) into the body, or `/name` of a query parameter. */
export type InputFault = { readonly path: string; readonly message: string };

export type Invalid<C extends RefusalCode> = Refused<C> & { readonly details: readonly InputFault[] };
export type InvalidRequest = Invalid<'invalid_request'>;

export const MAX_FAULTS = 32;

const MAX_PATH = 256;

/** One reference token, escaped (RFC 6901 §3). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** What a refusal lists in its details. */
export const faultsIn = ({ details }: Refused): readonly InputFault[] =>
  Array.isArray(details) ? details : [];

export const invalidRequest = (faults: readonly InputFault[]): InvalidRequest =>
  invalid('invalid_request', 'The request does not match its schema: see details.', faults);

/** Long property names of the caller are shortened. `place`: prefix of every path. */
export function invalid<C extends RefusalCode>(
  code: C,
  message: string,
  faults: readonly InputFault[],
  place = '',
): Invalid<C> {
  const details = faults.map((fault) => ({
    path: shortened(place + fault.path),
    message: fault.message,
  }));
  return { ...refused(code, message), details };
}

function shortened(path: string): string {
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH).replace(/[\ud800-\udbff]$/, '')}…` : path;
}

export type SchemaCheck<S extends TSchema> = {
  readonly schema: S;
  readonly matches: (value: unknown) => value is Static<S>;
  readonly faults: (value: unknown) => InputFault[];
};

export function schemaCheck<S extends TSchema>(schema: S): SchemaCheck<S> {
  let compiled: ReturnType<typeof TypeCompiler.Compile<S>> | undefined;
  const compile = () => {
    compiled ??= TypeCompiler.Compile(schema);
    return compiled;
  };
  return {
    schema,
    matches: (value): value is Static<S> => compile().Check(value),
    faults(value) {
      const faults = new Map<string, InputFault>();
      for (const error of compile().Errors(value)) {
        // The first is the plainest: a missing property is also of the wrong type.
        if (!faults.has(error.path)) faults.set(error.path, { path: error.path, message: messageOf(error) });
        if (faults.size === MAX_FAULTS) break;
      }
      return [...faults.values()];
    },
  };
}

/** The pattern and the format of a URL are explained; any other fault of it, such as its length, is reported as it is. */
function messageOf({ type, schema, message }: ValueError): string {
  if (type === ValueErrorType.StringMaxLength || type === ValueErrorType.StringMinLength) return message;
  const literals = literalsOf(schema);
  if (literals !== null) return `Expected one of ${literals.join(', ')}`;
  if (schema.pattern === '^[hH][tT][tT][pP][sS]://' || schema.format === 'uri')
    return 'Expected an absolute HTTPS URL';
  return message;
}

function literalsOf(schema: TSchema): readonly string[] | null {
  const options: readonly TSchema[] = schema.anyOf ?? [];
  if (options.length === 0 || options.some((option) => option[Kind] !== 'Literal')) return null;
  return options.map((option) => String(option.const));
}

export type IntegerParameter = {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Absent: the parameter is required. */
  readonly default?: number;
  readonly description: string;
};

/** A whole number in plain digits, once, within its bounds; the default if it is absent. Other parameters are ignored. */
export function readInteger(url: string, parameter: IntegerParameter): number | InvalidRequest {
  const { name, min, max } = parameter;
  const query = queryOf(url);
  const given = query === '' ? [] : new URLSearchParams(query).getAll(name);
  const [text = ''] = given;
  if (given.length === 0 && parameter.default !== undefined) return parameter.default;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : null;
  if (given.length === 1 && value !== null && value >= min && value <= max) return value;
  const fault: InputFault = { path: `/${name}`, message: `Expected one integer from ${min} to ${max}` };
  return invalidRequest([fault]);
}

/** From the text alone: the host before it need not be readable. */
const queryOf = (url: string) => /^[^?#]*\?([^#]*)/.exec(url)?.[1] ?? '';
