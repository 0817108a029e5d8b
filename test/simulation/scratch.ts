// The scratch space of an audit in memory.
import type { Json } from '#src/domain/canonical-json.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

export function memoryScratch<T extends Json>(): AuditScratch<T> {
  const rows = new Map<string, T>();
  const notes = new Map<string, string>();
  const repeated: { readonly value: string; readonly place: string }[] = [];
  return {
    get: (key) => rows.get(key) ?? null,
    put: (key, value) => void rows.set(key, value),
    values: (prefix) => [...rows].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value),
    note(value, place) {
      if (notes.has(value)) repeated.push({ value, place });
      else notes.set(value, place);
    },
    repeated: () => repeated,
    close: () => undefined,
  };
}
