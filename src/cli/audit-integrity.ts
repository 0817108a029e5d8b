// relay audit --integrity: checks how the event log is stored, beside a running service too.
import type { Finding } from '#src/domain/audit/finding.ts';
import type { Integrity } from '#src/usecases/audit/check-integrity.ts';
import { CannotRun, EXIT } from './exit.ts';
import { findingTable } from './finding-table.ts';
import { shareOf, withLog } from './operator.ts';
import { jsonText, mark, numbered, paint, print, printer, shown, showProgress } from './terminal.ts';

type Options = { readonly json?: true } & Readonly<Record<string, unknown>>;

/** Those compare what the log says. */
const OTHERS = ['events', 'keys', 'checkpoint', 'rpc'] as const;

export async function checkIntegrity({ json, ...options }: Options): Promise<void> {
  const other = OTHERS.find((name) => options[name] !== undefined);
  if (other !== undefined) throw new CannotRun(`--integrity and --${other} cannot be combined`);
  const findings = findingTable();
  const onFinding = (finding: Finding) => {
    findings.add(finding);
    // At once: it remains if the rest cannot be read.
    process.exitCode = EXIT.foundWrong;
    if (json) print(jsonText({ finding }));
  };
  const write = printer(json === true);
  const progress = showProgress('reading the events', write);
  const { checkStorage } = await import('#src/app/operator.ts');
  try {
    const integrity = await withLog(({ log }) =>
      checkStorage(log, {
        onFinding,
        onProgress: (events, position, head) =>
          progress.show({ events, eventsHere: events, share: shareOf(position, head) }),
        onEventsRead() {
          progress.end();
          write('checking the files');
        },
      }),
    );
    if (json) {
      print(jsonText({ summary: { ok: integrity.findings === 0, ...integrity } }));
      return;
    }
    const lines = findings.lines();
    print(...lines, ...(lines.length > 0 ? [''] : []), ...summaryLines(integrity));
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
