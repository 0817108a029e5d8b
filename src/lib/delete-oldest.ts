/** Deletes the entry that was added first. */
export function deleteOldest<K>(entries: Map<K, unknown> | Set<K>): void {
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
