// relay backup, relay restore: the embedded event log with what is remembered of it, and the key file.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { Manifest } from '#src/domain/backup/manifest.ts';
import { readLogConfig } from '../config.ts';
import { CannotRun, exiting } from './exit.ts';
import { mark, numbered, plain, print, printJson, row } from './terminal.ts';

type BackupOptions = {
  readonly out?: string;
  readonly into?: string;
  readonly keep: number;
  readonly json?: true;
};
type RestoreOptions = { readonly olderLog?: true; readonly json?: true };

const BACKUP_HELP = `
Copies the event log of DATA_DIR as it is at one moment, also while a service runs on it, with checkpoint.note and
event-log.json (folder log), and the key file (folder keys, mode 0600: store it apart from the rest). The copy is audited
before it gets its name. Read models need no backup.
  --out   a new folder
  --into  a folder of backups, each named by its time; the newest --keep are kept
With EVENTSTORE_URL use the backup procedure of EventStoreDB.
Exit status: 0 good, 1 the backup is whole, and the audit of the record has findings, 2 there is no backup.`;

const RESTORE_HELP = `
Stop the service first. Every file is compared with what was written. A backup that lacks events, keys or checkpoints
which are in place is refused: calls that were answered since then would be sent and charged again.
  --older-log  restore it all the same. A newer checkpoint.note stays, so the service takes no call until you have decided
What was in place is kept under another name. Keys that the backup lacks stay in the key file, after those of the
backup, and sign nothing until "relay keys rotate" announces one of them. DATA_DIR and SIGNING_KEYS_FILE say where to restore.`;

export function addBackup(program: Command): void {
  program
    .command('backup')
    .description('Back up the embedded event log and the key file, also while a service runs.')
    .option('--out <folder>', 'the new folder of the backup')
    .option('--into <folder>', 'a folder of backups: adds one, named by its time')
    .option('--keep <number>', 'with --into, how many to keep', readCount, 14)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', BACKUP_HELP)
    .action(exiting(backup));
}

export function addRestore(program: Command): void {
  program
    .command('restore')
    .description('Put a backup of the embedded event log and the key file in place.')
    .argument('<folder>', 'a backup')
    .option('--older-log', 'also if the backup lacks events, keys or checkpoints that are in place')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', RESTORE_HELP)
    .action(restore);
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1.');
}

async function backup({ out, into, keep, json }: BackupOptions): Promise<boolean> {
  if ((out === undefined) === (into === undefined))
    throw new CannotRun('name the place with --out or --into');
  const config = readLogConfig();
  const { makeBackup, makeDatedBackup } = await import('#src/app/backup/backup.ts');
  const onFinding = ({ kind, message, stream }: Finding) => {
    if (!json) print(`${mark(false)} ${kind} ${plain(stream ?? '')} ${plain(message)}`);
  };
  const folder = resolve(out ?? into ?? '');
  const made =
    into === undefined
      ? { path: folder, manifest: await makeBackup(config, { folder, onFinding }), removed: [] }
      : await makeDatedBackup(config, { folder, keep, onFinding });
  const { manifest, path, removed } = made;
  if (json) printJson({ path, removed, ...manifest });
  else
    print(
      `${mark(true)} ${path}`,
      ...contentLines(manifest),
      ...(removed.length === 0 ? [] : [row('removed', removed.join(', '))]),
    );
  return manifest.log.findings === 0;
}

function contentLines({ createdAt, log }: Manifest): readonly string[] {
  const audit = log.findings === 0 ? 'no problem' : `${numbered(log.findings, 'problem')}: see relay audit`;
  return [
    row('made', createdAt),
    row('event log', `${numbered(log.events, 'event')}, ${numbered(log.treeSize, 'leaf', 'leaves')}`),
    row('audit', audit),
  ];
}

async function restore(from: string, { olderLog, json }: RestoreOptions): Promise<void> {
  const config = readLogConfig();
  const folder = resolve(from);
  const { restoreBackup } = await import('#src/app/backup/restore.ts');
  const { manifest, losses, aside } = await restoreBackup(config, { folder, olderLog: olderLog === true });
  if (json) return printJson({ folder, losses, aside, ...manifest });
  print(`${mark(true)} ${folder} is in place in ${config.dataDir}`, ...contentLines(manifest));
  for (const path of aside) print(row('kept', path));
  for (const loss of losses) print(row('lost', loss));
  if (losses.length > 0)
    print(
      'If checkpoint.note is newer, no call is taken until you decide: see Acknowledged events are missing in RUNBOOK.md.',
    );
}
