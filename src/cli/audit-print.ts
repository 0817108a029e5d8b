// An audit on the terminal: the findings as a table, what was looked at, and what no audit can tell.

import type { EvidenceNotes } from '#src/usecases/audit/audit-evidence.ts';
import type { AuditSummary } from '#src/usecases/audit/audit-log.ts';
import type { EvidenceFinding } from '../domain/audit/evidence.ts';
import type { Finding } from '../domain/audit/finding.ts';
import { mark, paint, plain, shown } from './terminal.ts';

export type AnyFinding = Finding | EvidenceFinding;

/** All of them are in `--json`; a person reads the first ones. */
const SHOWN_FINDINGS = 50;

const TITLES = ['kind', 'stream', 'revision', 'job', 'what is wrong'];

const cells = ({ kind, stream, revision, jobId, message }: AnyFinding): string[] =>
  [kind, stream ?? '-', revision ?? '-', jobId ?? '-', message].map(shown);

/** Keeps what is shown and counts the rest. */
export function findingTable() {
  const kept: string[][] = [];
  let total = 0;
  return {
    add(finding: AnyFinding): void {
      total++;
      if (kept.length < SHOWN_FINDINGS) kept.push(cells(finding));
    },
    total: () => total,
    lines(): readonly string[] {
      if (total === 0) return [];
      // The last column is free to be as long as it is.
      const widths = TITLES.slice(0, -1).map((title, i) =>
        Math.max(title.length, ...kept.map((line) => line[i]?.length ?? 0)),
      );
      const aligned = (line: readonly string[]) =>
        line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
      const more = total > kept.length ? [`and ${total - kept.length} more: --json tells all of them`] : [];
      return [paint('bold', aligned(TITLES)), ...kept.map(aligned), ...more];
    },
  };
}

export type Audited = {
  readonly of: string;
  readonly summary: AuditSummary;
  readonly keptNotes: EvidenceNotes;
  readonly findings: number;
  /** Where the keys come from that were demanded; null: from the record itself. */
  readonly keysFrom: string | null;
  readonly checkpointsFrom: readonly string[];
};

export function summaryLines({
  of,
  summary,
  keptNotes,
  findings,
  keysFrom,
  checkpointsFrom,
}: Audited): readonly string[] {
  const { events, streams, jobs, receipts, keys, checkpoints, treeSize, root, head } = summary;
  const verdict =
    findings === 0
      ? `${mark(true)} ${paint('green', 'Nothing wrong was found.')}`
      : `${mark(false)} ${paint('red', findings === 1 ? '1 thing is wrong.' : `${findings} things are wrong.`)}`;
  return [
    verdict,
    `  looked at    ${plain(of)}: ${events} events of ${streams} streams, up to ${shown(head ?? 'nothing')}`,
    `  in it        ${jobs} jobs, ${receipts} receipts, ${keys} keys, ${checkpoints} checkpoints`,
    `  tree         ${treeSize} leaves, root ${root}`,
    `  keys         ${keysFrom === null ? 'as the record itself tells them: --keys demands those that you trust' : `compared with ${plain(keysFrom)}`}`,
    `  kept         ${checkpointsFrom.length === 0 ? 'no checkpoint: --checkpoint demands the past that you saw' : checkpointsFrom.map(plain).join(', ')}`,
    ...noteLines({ ...summary.notes, ...keptNotes }),
    'What no audit can tell:',
    ...LIMITS.map((limit) => `  ${limit}`),
  ];
}

function noteLines(notes: AuditSummary['notes'] & EvidenceNotes): readonly string[] {
  const told = [
    [notes.openJobs, 'jobs that run, or that nobody has closed yet'],
    [notes.unservedPayments, 'payments that settled and whose job never started'],
    [notes.unconfirmedPayments, 'payments of which nobody knows whether the money moved'],
    [notes.uncoveredLeaves, 'leaves that no checkpoint covers yet'],
    [notes.unfitCheckpoints, 'checkpoints behind the first wrong one, which do not fit either'],
    [
      notes.unreachedCheckpoints,
      'kept checkpoints not in it: the record ends before the kept checkpoint was signed, or it was taken out',
    ],
  ] as const;
  return told.flatMap(([count, words]) => (count === 0 ? [] : [`  to know      ${count} ${words}`]));
}

/** receipts.md §4. */
export const LIMITS: readonly string[] = [
  'whether an outcome that was truly signed is true: a signature proves what the relay said, not what a target did',
  'whether others are shown the same record: no witness has cosigned, so compare checkpoints with theirs',
  'what was left out before the first checkpoint that anybody kept, or behind the last one: receipts may have been cut there',
  'whether payments or claims of keys that ended without a job were taken away with all their events',
  'whether times, metadata and ids are true that no receipt is signed over',
];
