// relay audit: every event of the log, or of an export, checked against all the others and against its receipts. It reads
// nothing else: no read model, no network.
import type { Command } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { evidenceAuditor } from '#src/usecases/audit/audit-evidence.ts';
import { readCheckpoint } from './audit-evidence.ts';
import { type AnyFinding, type Audited, findingTable, LIMITS, summaryLines } from './audit-print.ts';
import { sourceOf } from './audit-source.ts';
import { type End, EXIT } from './exit.ts';
import { jsonText, print } from './terminal.ts';
import { readKeys } from './verify.ts';

type Options = {
  readonly events?: string;
  readonly keys?: string;
  readonly checkpoint?: readonly string[];
  readonly json?: true;
};

const HELP = `
Without --events the log of DATA_DIR, or of EVENTSTORE_URL, is read, also while a service runs on it.
Keys and past come from the record itself, so a relay that rewrites all of it is found only by what others have kept:
  --keys        its key set from before, from https://<relay>/.well-known/jwks.json
  --checkpoint  a checkpoint that came with an execution, or from /log/checkpoint; may be given several times
A receipt that was issued from the time on since which its key is compromised does not verify, also where this relay issued
it: after "relay keys retire --compromised" it is found by every audit (receipt_key_invalid), and so is a checkpoint that
was signed before a process had read of it (checkpoint_key_compromised): the exit status stays 1.
With --json each finding is a line, {"finding":{…}}, and the last line is {"summary":{…}}.
Exit status: 0 nothing wrong, 1 something was found wrong, 2 it could not run to its end.`;

export function addAudit(program: Command, end: End): void {
  program
    .command('audit')
    .description('check the whole record: events, receipts, keys, payments, checkpoints')
    .option('--events <file>', 'an export instead of the log; - for standard input')
    .option('--keys <jwks>', 'the key set that you trust: the record must have these keys and no others')
    .option(
      '--checkpoint <file>',
      'a checkpoint that you kept: the record must still have what it was signed over',
      (file: string, before: readonly string[] = []) => [...before, file],
    )
    .option('--json', 'for machines: a line for each finding, then one for the summary')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      await audit(options, end);
    });
}

async function audit(options: Options, end: End): Promise<void> {
  const keys = options.keys === undefined ? null : await readKeys(options.keys);
  const checkpointsFrom = options.checkpoint ?? [];
  const checkpoints = await Promise.all(checkpointsFrom.map(readCheckpoint));
  const table = findingTable();
  const found = (finding: AnyFinding) => {
    table.add(finding);
    // Whatever comes of the rest: it has been found.
    end(EXIT.foundWrong);
    if (options.json) print(jsonText({ finding }));
  };
  const write = options.json ? (line: string) => void process.stderr.write(`${line}\n`) : print;
  const source = sourceOf(options.events, found, write);
  const { openAuditor } = await import('#src/app/audit.ts');
  const auditor = openAuditor(found);
  try {
    const evidence = evidenceAuditor(verifierPrimitives, { keys, checkpoints });
    for await (const event of source.events) {
      await auditor.take(event);
      await evidence.take(event);
    }
    const summary = await auditor.finish();
    const { findings, notes } = await evidence.finish();
    for (const finding of findings) found(finding);
    const from = { of: source.name, keysFrom: options.keys ?? null, checkpointsFrom };
    tell(options, { ...from, summary, keptNotes: notes, findings: table.total() }, table.lines());
  } finally {
    auditor.close();
  }
}

function tell({ json }: Options, audited: Audited, table: readonly string[]): void {
  if (!json) {
    print(...table, ...(table.length > 0 ? [''] : []), ...summaryLines(audited));
    return;
  }
  const { summary, keptNotes, findings, ...from } = audited;
  const notes = { ...summary.notes, ...keptNotes };
  const ok = findings === 0;
  print(jsonText({ summary: { ok, ...from, ...summary, findings, notes, cannotTell: LIMITS } }));
}
