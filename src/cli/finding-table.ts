// Findings as a table for a person.
import type { Finding } from '#src/domain/audit/finding.ts';
import { shown, table } from './terminal.ts';

/** `--json` prints all findings; the table shows the first ones. */
const SHOWN_FINDINGS = 50;

/** Keeps the findings that are shown, and counts all. */
export function findingTable() {
  const kept: string[][] = [];
  let total = 0;
  return {
    add({ kind, stream, revision, jobId, message }: Finding): void {
      total++;
      if (kept.length < SHOWN_FINDINGS)
        kept.push([kind, stream ?? '-', revision ?? '-', jobId ?? '-', message].map(shown));
    },
    total: () => total,
    lines(): readonly string[] {
      if (total === 0) return [];
      const more = total > kept.length ? [`and ${total - kept.length} more: use --json to print all`] : [];
      return [...table(['kind', 'stream', 'revision', 'job', 'what is wrong'], kept), ...more];
    },
  };
}
