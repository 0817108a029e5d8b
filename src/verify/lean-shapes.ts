// Replaces the schema package in the bundles: each schema of the domain becomes a plain function. A page neither compiles
// nor interprets a schema, and a reader of the bundle sees what is checked. Only the kinds of schema that the domain uses
// are supported; a bundle with another kind fails at load.
import { isObject } from '#src/lib/is-object.ts';

type Fits = (value: unknown) => boolean;
type Shape = Fits & { readonly optional?: true };

const number =
  (fits: (value: unknown) => boolean) =>
  ({ minimum = -Infinity, maximum = Infinity } = {}): Shape =>
  (value) =>
    typeof value === 'number' && fits(value) && value >= minimum && value <= maximum;

const formats = new Map<string, (text: string) => boolean>();

/** Formats that the domain registers; any other one is not checked. */
export const FormatRegistry = {
  Set: (name: string, fits: (text: string) => boolean): void => void formats.set(name, fits),
};

export const Type = {
  Unknown: (): Shape => () => true,
  /** Known to the compiler only. */
  Unsafe: (fits: Shape): Shape => fits,
  Record:
    (_name: Shape, fits: Shape): Shape =>
    (value) =>
      isObject(value) && Object.values(value).every(fits),
  Null: (): Shape => (value) => value === null,
  Boolean: (): Shape => (value) => typeof value === 'boolean',
  Literal:
    (literal: unknown): Shape =>
    (value) =>
      value === literal,
  Integer: number(Number.isInteger),
  Number: number(Number.isFinite),
  String({ pattern = '', minLength = 0, format = '' } = {}): Shape {
    const expression = new RegExp(pattern);
    return (value) =>
      typeof value === 'string' &&
      value.length >= minLength &&
      expression.test(value) &&
      formats.get(format)?.(value) !== false;
  },
  Union:
    (shapes: readonly Shape[]): Shape =>
    (value) =>
      shapes.some((fits) => fits(value)),
  Array:
    (fits: Shape): Shape =>
    (value) =>
      Array.isArray(value) && value.every(fits),
  Optional: (fits: Shape): Shape =>
    Object.assign((value: unknown) => fits(value), { optional: true as const }),
  Object(members: Readonly<Record<string, Shape>>, { additionalProperties = true } = {}): Shape {
    const shapes = Object.entries(members);
    return (value) =>
      isObject(value) &&
      shapes.every(([name, fits]) => (fits.optional && value[name] === undefined) || fits(value[name])) &&
      (additionalProperties || Object.keys(value).every((name) => Object.hasOwn(members, name)));
  },
};

export const shapeCheck = (shape: Shape): Shape => shape;
