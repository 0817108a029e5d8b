// relay audit --integrity: checks how the event log is stored, beside a running service too.
import type { Integrity } from '#src/usecases/audit/check-integrity.ts';
import { auditReport } from './audit-report.ts';
import { CannotRun } from './exit.ts';
import { shareOf, withLog } from './operator.ts';
import { mark, numbered, paint, printer, shown, showProgress } from './terminal.ts';

type Options = { readonly json?: true } & Readonly<Record<string, unknown>>;

/** Those compare what the log says. */
const OTHERS = ['events', 'keys', 'checkpoint', 'rpc'] as const;

export async function checkIntegrity({ json, ...options }: Options): Promise<void> {
  const other = OTHERS.find((name) => options[name] !== undefined);
  if (other !== undefined) throw new CannotRun(`--integrity and --${other} cannot be combined`);
  const report = auditReport(json === true);
  const write = printer(json === true);
  const progress = showProgress('reading the events', write);
  const { checkStorage } = await import('#src/app/operator.ts');
  try {
    const integrity = await withLog(({ log }) =>
      checkStorage(log, {
        onFinding: report.found,
        onProgress: (events, position, head) =>
          progress.show({ events, eventsHere: events, share: shareOf(position, head) }),
        onEventsRead() {
          progress.end();
          write('checking the files');
        },
      }),
    );
    report.end(integrity, summaryLines);
  } finally {
    progress.end();
  }
}

function summaryLines(integrity: Integrity): readonly string[] {
  const { events, streams, damaged, unchecked, head, filesChecked, findings } = integrity;
  return [
    findings === 0
      ? `${mark(true)} ${paint('green', 'The log is stored as it was written.')}`
      : `${mark(false)} ${paint('red', `${numbered(findings, 'problem')} found.`)} Keep the damaged file; put back a backup: see Damage in OPERATING.md.`,
    `  events       ${numbered(events, 'event')} of ${numbered(streams, 'stream')}, up to ${shown(head ?? 'nothing')}; damaged: ${damaged}`,
    `  checksums    ${unchecked === 0 ? 'of all events compared' : `compared, but ${numbered(unchecked, 'event')} of an older release ${unchecked === 1 ? 'has' : 'have'} none and ${unchecked === 1 ? 'is' : 'are'} not covered`}`,
    `  files        ${filesChecked ? 'checked by SQLite' : 'EventStoreDB checks its own, and checksums of events are its own too'}`,
  ];
}
