// Equality of recorded values: by their canonical spelling, whatever the order of their names.
import { canonicalJson, type Json } from '../canonical-json.ts';

/** Of JSON that a log can hold: what no canonical JSON can spell equals nothing. */
export function same(a: object, b: object): boolean {
  try {
    return canonicalJson({ ...a } as Json) === canonicalJson({ ...b } as Json);
  } catch {
    return false;
  }
}

/** Names of the members that differ, of those that the first has. */
export function differing<T extends { readonly [name: string]: string | number | boolean | null }>(
  expected: T,
  found: { readonly [K in keyof T]: unknown },
): readonly string[] {
  return Object.keys(expected).filter((name) => expected[name] !== found[name]);
}
