// Findings for a person, as a table, or for a program, each as a line of JSON.
import type { Finding } from '#src/domain/audit/finding.ts';
import { EXIT } from './exit.ts';
import { jsonText, print, shown, table } from './terminal.ts';

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

/**
 * What an audit prints: its findings and then its summary. From the first finding on, the exit status is 1; if all there is
 * to find is that a newer release has to audit the rest, it is 2.
 */
export function auditReport(json: boolean) {
  const findings = findingTable();
  return {
    found(finding: Finding): void {
      findings.add(finding);
      // At once: it remains if the rest cannot be read.
      const isUnfinished = finding.kind === 'event_of_newer_release' && process.exitCode !== EXIT.foundWrong;
      process.exitCode = isUnfinished ? EXIT.couldNotRun : EXIT.foundWrong;
      if (json) print(jsonText({ finding }));
    },
    total: findings.total,
    end<S extends { readonly findings: number }>(
      summary: S,
      summaryLines: (summary: S) => readonly string[],
    ): void {
      const lines = findings.lines();
      if (json) print(jsonText({ summary: { ok: summary.findings === 0, ...summary } }));
      else print(...lines, ...(lines.length > 0 ? [''] : []), ...summaryLines(summary));
    },
  };
}
