// Scratch storage of an audit in memory; also the state that later audits continue.
import assert from 'node:assert/strict';
import type { Json } from '#src/domain/canonical-json.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

export function memoryScratch<T extends Json>(): AuditScratch<T> {
  const rows = new Map<string, T>();
  const openKeys = new Set<string>();
  const noted = new Set<string>();
  const repeated: { readonly value: string; readonly place: string }[] = [];
  return {
    get: (key) => rows.get(key) ?? null,
    demand: (key) => rows.get(key) ?? assert.fail(key),
    put(key, value, _added, isOpen = false) {
      rows.set(key, value);
      if (isOpen) openKeys.add(key);
      else openKeys.delete(key);
    },
    values: (prefix) =>
      [...rows]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, value]) => value),
    open: (prefix, after, max) =>
      [...openKeys]
        .filter((key) => key.startsWith(prefix) && key > (after ?? ''))
        .sort()
        .slice(0, max)
        .map((key) => ({ key, value: rows.get(key) as T })),
    note(value, place) {
      if (noted.has(value)) repeated.push({ value, place });
      noted.add(value);
    },
    repeated: () => repeated.toSorted((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : 0)),
    close: () => undefined,
  };
}
