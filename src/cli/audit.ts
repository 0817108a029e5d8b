// relay audit: checks every event of the log, or of an export, against the others and against the receipts. It reads no
// read model and uses no network.
import { createReadStream, statSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import { auditAgainstChain, type ChainChecked } from '#src/usecases/audit/audit-against-chain.ts';
import type { Auditor, AuditSummary } from '#src/usecases/audit/audit-log.ts';
import type { Integrity } from '#src/usecases/audit/check-integrity.ts';
import { continueAudit } from '#src/usecases/audit/continue-audit.ts';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import type { Finding } from '../domain/audit/finding.ts';
import { witnessTime } from '../domain/receipt/texts.ts';
import type { EventScan, Scanned, ScannedLog } from '../ports/event-scan.ts';
import { auditReport } from './audit-report.ts';
import { CannotRun, FoundWrong } from './exit.ts';
import { eventsOfExport } from './export-file.ts';
import { shareOf, withLog } from './operator.ts';
import { readCheckpoint } from './read-checkpoint.ts';
import { readPolicy } from './read-policy.ts';
import { nameOf, unreadableSource } from './read-source.ts';
import {
  mark,
  numbered,
  paint,
  plain,
  printer,
  type ShownProgress,
  shown,
  showProgress,
} from './terminal.ts';
import { readKeys } from './verify.ts';

type Options = {
  readonly events?: string;
  readonly keys?: string;
  readonly checkpoint?: readonly string[];
  readonly policy?: string;
  readonly rpc?: string;
  readonly state?: string;
  readonly integrity?: true;
  readonly json?: true;
};

const HELP = `
Without --events the log of DATA_DIR, or of EVENTSTORE_URL, is read, also while a service runs on it.
Signing keys and checkpoints come from the record itself, so a relay that rewrites all of it is detected only with:
  --keys        an earlier key set, from https://<relay>/.well-known/jwks.json
  --checkpoint  an earlier checkpoint, from an execution response or /log/checkpoint; may be repeated
  --policy      witnesses that you trust (C2SP tlog-policy): every cosignature of theirs must verify, and a checkpoint with
                their quorum counts as kept since the time that they state
A receipt issued at or after the time since which its key is compromised does not verify: after "relay keys retire
--compromised" every audit reports it (receipt_key_invalid), and also a checkpoint that was signed before a process had
read the retirement (checkpoint_signature_invalid): the exit status stays 1. With a --checkpoint from before the
compromise, receipts of that key beyond it that state an earlier time are reported too (receipt_date_unproven).
Comparisons with the chain and refunds are the operator's statement, except with
  --rpc         a node of the chain: every block, transfer, charge and refund that the record names must be on it; also a
                charge that the record itself states as missing is a finding (charge_not_on_chain)
With --state the findings, and what the audit knows of the log, are kept in a file, and the next audit with it reads only
what is new: it reports the same findings as an audit of the complete log. It trusts the file for what it has read before:
keep it where the relay cannot write. A log that lacks the last checkpoint of the file is refused (exit status 1). The file
is of one release, and of one --keys and --policy; nothing is kept of a log with damage. It contains what the log has of
jobs and payments: mode 0600. With --rpc, what the chain has had is not compared again.
A record that a newer release has continued is audited up to the first event of a version that this one does not read: one
finding (event_of_newer_release). Run the audit of that release.
Damaged events are findings (event_damaged), and what the record lacks without them may be too. Only
  --integrity   looks for all damage: it compares each event with its checksum, looks it up in its stream, and runs the
                check of the storage engine (EventStoreDB checks its own files). No receipt is verified.
With --json each finding is a line, {"finding":{…}}, and the last line is {"summary":{…}}.
Exit status: 0 no finding, 1 at least one finding, 2 the audit could not be completed, or event_of_newer_release is the only
finding.`;

export function addAudit(program: Command): void {
  program
    .command('audit')
    .description('Check the complete record: events, receipts, keys, payments, checkpoints.')
    .option('--events <file>', 'read an export instead of the log; - for standard input')
    .option('--keys <jwks>', 'a key set that you trust: the record must have these keys and no others')
    .option(
      '--checkpoint <file>',
      'a checkpoint that you kept: the record must still contain what it was signed over',
      (file: string, before: readonly string[] = []) => [...before, file],
    )
    .option('--policy <file>', 'witnesses that you trust: verify their cosignatures (C2SP tlog-policy)')
    .option('--integrity', 'check that the log is stored as it was written, instead of what it says')
    .option('--rpc <url>', 'a node of the chain: compare comparisons, charges and refunds with it', readUrl)
    .option('--state <file>', 'continue the audit that left this file, and keep this one in it')
    .option('--json', 'print a line of JSON for each finding, then one for the summary')
    .addHelpText('after', HELP)
    .action(audit);
}

async function audit(options: Options): Promise<void> {
  if (options.integrity) return checkIntegrity(options);
  const { events: file, json, state } = options;
  if (file !== undefined && state !== undefined)
    throw new CannotRun('--state and --events cannot be combined: the state is of the log itself');
  const keys = options.keys === undefined ? null : await readKeys(options.keys);
  const checkpointsFrom = options.checkpoint ?? [];
  const checkpoints = await Promise.all(checkpointsFrom.map(readCheckpoint));
  const policy = options.policy === undefined ? null : await readPolicy(options.policy);
  const { found, total, end } = auditReport(json === true);
  const { openAuditor } = await import('#src/app/operator.ts');
  const kept = { keys, checkpoints, policy };
  const auditor = openAuditor(found, { kept, stateFile: state });
  const take = async (all: AsyncIterable<Scanned>) => {
    for await (const scanned of all) {
      if (scanned.kind === 'event') await auditor.take(scanned.event);
      else auditor.takeDamaged(scanned.damage);
    }
  };
  const progress = showProgress('auditing', printer(json === true));
  try {
    if (file === undefined)
      await withLog(async ({ log }) =>
        take(eventsOfLog(log, await continuedAfter(auditor, log, state), progress)),
      );
    else await take(eventsOfFile(file, found, progress));
    const summary = await auditor.finish();
    progress.end();
    // Charges behind an event that is not read are not known.
    let chain: ChainChecked | null = null;
    let saved = false;
    try {
      if (options.rpc !== undefined && summary.newer === 0)
        chain = await againstChain(options.rpc, auditor, found, json === true);
    } finally {
      // Also where the node gives no answer: the record itself was checked.
      if (state !== undefined) saved = auditor.kept.save();
    }
    const newEvents = summary.events - (auditor.kept.saved?.order.events ?? 0);
    const source = file === undefined ? 'the log' : nameOf(file);
    const evidence = {
      of: source,
      keysFrom: options.keys ?? null,
      checkpointsFrom,
      policyFrom: options.policy ?? null,
      chain,
      state: state === undefined ? null : { file: state, newEvents, saved },
    };
    end({ ...evidence, ...summary, findings: total() }, summaryLines);
  } finally {
    progress.end();
    auditor.close();
  }
}

/** The position that the audit continues after; null: it begins with the first event. */
async function continuedAfter(
  auditor: Auditor,
  log: ScannedLog,
  file: string | undefined,
): Promise<string | null> {
  const continued = await continueAudit(auditor, log);
  switch (continued.kind) {
    case 'continued':
      return continued.after;
    case 'other_release':
      throw new CannotRun(
        `${file} was written by release ${continued.release}: delete it, and audit the complete log again`,
      );
    case 'other_evidence':
      throw new CannotRun(
        `${file} was made with other --keys or another --policy: give those, or name another file`,
      );
    case 'other_log':
      throw new FoundWrong(
        `the log does not contain ${continued.what}, with which ${file} ends: it was rewritten, was put back from an older backup, or is another log; keep both`,
      );
    default:
      return continued satisfies never;
  }
}

async function* eventsOfLog(
  log: EventScan,
  after: string | null,
  progress: ShownProgress,
): AsyncGenerator<Scanned, void, undefined> {
  let events = 0;
  const head = await log.lastPosition();
  const show = (position: string | null) =>
    progress.show({ events, eventsHere: events, share: shareOf(position, head) });
  show(after);
  for await (const { found, next } of pagesOf(log, after, head)) {
    yield* found;
    events += found.length;
    show(next ?? head);
  }
}

/** Lines between two updates of the progress. */
const SHOW_EVERY = 512;

async function* eventsOfFile(
  source: string,
  found: (finding: Finding) => void,
  progress: ShownProgress,
): AsyncGenerator<Scanned, void, undefined> {
  const size = source === '-' ? null : sizeOf(source);
  const chunks = source === '-' ? process.stdin : createReadStream(source, { highWaterMark: 256 * 1024 });
  let [events, bytes] = [0, 0];
  const show = () => progress.show({ events, eventsHere: events, share: size && bytes / size });
  show();
  const lines = eventsOfExport(source, readable(source, chunks), found, (read) => {
    bytes = read;
  });
  for await (const item of lines) {
    yield item;
    events++;
    if (events % SHOW_EVERY === 0) show();
  }
}

async function againstChain(
  rpcUrl: string,
  { stated: record }: Pick<Auditor, 'stated'>,
  onFinding: (finding: Finding) => void,
  toStderr: boolean,
): Promise<ChainChecked> {
  const { auditedChain } = await import('#src/app/chain.ts');
  const progress = showProgress('comparing with the chain', printer(toStderr));
  let count = 0;
  const onChecked = () => progress.show({ events: ++count, eventsHere: count, share: null });
  try {
    const chain = auditedChain(rpcUrl);
    return await auditAgainstChain({ record, chain, onFinding, onChecked });
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    throw new CannotRun(
      `the node of --rpc gives no usable answer (${error.code}); the record itself was checked`,
    );
  } finally {
    progress.end();
  }
}

function readUrl(text: string): string {
  const protocol = URL.parse(text)?.protocol;
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new InvalidArgumentError('It must be an address of http or https.');
  return text;
}

/** null if unknown. */
function sizeOf(source: string): number | null {
  try {
    const stat = statSync(source);
    return stat.isFile() && stat.size > 0 ? stat.size : null;
  } catch (error) {
    throw unreadableSource(source, error);
  }
}

async function* readable(
  source: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunks;
  } catch (error) {
    throw unreadableSource(source, error);
  }
}

type Audited = AuditSummary & {
  readonly of: string;
  /** Source of the required key set; null: the keys of the record were used. */
  readonly keysFrom: string | null;
  readonly checkpointsFrom: readonly string[];
  /** Source of the policy; null: no cosignature was verified. */
  readonly policyFrom: string | null;
  /** null: nothing was compared with the chain. */
  readonly chain: ChainChecked | null;
  /** null: without `--state`. `newEvents`: read in this run. */
  readonly state: { readonly file: string; readonly newEvents: number; readonly saved: boolean } | null;
};

function summaryLines(audited: Audited): readonly string[] {
  const { of: source, findings, keysFrom, checkpointsFrom, notes, damaged, newer } = audited;
  const { events, streams, jobs, receipts, keys, checkpoints, treeSize, root, head } = audited;
  const problems = newer > 0 ? findings - 1 : findings;
  const found =
    problems === 1 ? '1 problem was found' : `${problems === 0 ? 'No' : problems} problems were found`;
  const verdict =
    findings === 0
      ? `${mark(true)} ${paint('green', 'No problem was found.')}`
      : `${mark(false)} ${paint('red', newer > 0 ? `Not completed: a newer release has written here. ${found} before that.` : `${found}.`)}`;
  return [
    verdict,
    `  source       ${plain(source)}: ${numbered(events, 'event')} of ${numbered(streams, 'stream')}, up to ${shown(head ?? 'nothing')}`,
    `  contents     ${numbered(jobs, 'job')}, ${numbered(receipts, 'receipt')}, ${numbered(keys, 'key')}, ${numbered(checkpoints, 'checkpoint')}`,
    `  tree         ${numbered(treeSize, 'leaf', 'leaves')}, root ${root}`,
    `  keys         ${keysFrom === null ? 'from the record itself; --keys requires the ones that you trust' : `compared with ${plain(keysFrom)}`}`,
    `  checkpoints  ${checkpointsFrom.length === 0 ? 'from the record itself; --checkpoint requires one that you kept' : checkpointsFrom.map(plain).join(', ')}`,
    `  witnesses    ${witnessLine(audited)}`,
    `  chain        ${chainLine(audited)}`,
    ...(audited.state === null ? [] : [`  state        ${stateLine(audited.state)}`]),
    ...(damaged === 0
      ? []
      : [`  damage       ${numbered(damaged, 'event')}; other problems may follow from that`]),
    ...(newer === 0
      ? []
      : [
          `  release      ${numbered(newer, 'event')} written by a newer release: from the first on, only order, ids and damage are audited, and nothing is compared with the chain; run the audit of that release`,
        ]),
    ...noteLines(notes),
  ];
}

function witnessLine({ policyFrom, witnessed }: Audited): string {
  if (policyFrom === null || witnessed === null)
    return 'cosignatures are not verified; --policy verifies those of the witnesses that you trust';
  const { checkpoints, largest } = witnessed;
  const cosigned = `${numbered(checkpoints, 'checkpoint')} cosigned by a quorum of ${plain(policyFrom)}`;
  return largest === null
    ? cosigned
    : `${cosigned}, the largest of ${numbered(largest.size, 'leaf', 'leaves')} by ${witnessTime(largest.time)}`;
}

function stateLine({ file, newEvents, saved }: NonNullable<Audited['state']>): string {
  const kept = saved
    ? `kept in ${plain(file)}`
    : `${plain(file)} remains as it was: nothing is kept of a log with damage, or with events of a newer release`;
  return `${numbered(newEvents, 'event')} audited in this run; ${kept}`;
}

function chainLine({ comparisons, refunds, chain, state }: Audited): string {
  const stated = `${numbered(comparisons, 'comparison')} and ${numbered(refunds, 'refund')}`;
  if (chain === null)
    return `${stated}: receipts of money and refunds are the operator's statement; --rpc checks them`;
  const elsewhere = chain.elsewhere === 0 ? '' : `; of other networks, not checked: ${chain.elsewhere}`;
  const charges = chain.charges === 0 ? '' : `, ${numbered(chain.charges, 'other charge')}`;
  const checked = `${numbered(chain.comparisons, 'comparison')}${charges} and ${numbered(chain.refunds, 'refund')}`;
  const earlier = state === null ? '' : '; what an earlier run has found on it is not compared again';
  return `${checked} compared with ${chain.network}${elsewhere}${earlier}`;
}

const NOTES: Readonly<Record<keyof Audited['notes'], string>> = {
  openJobs: 'jobs that are running or not completed',
  unservedPayments: 'payments that settled and whose job never started',
  unconfirmedPayments: 'payments whose settlement is unconfirmed',
  missingPayments: 'payments that were charged, and that the chain does not have',
  correctedCharges: 'charges that the chain has in another transaction than was recorded first',
  begunRefunds: 'refunds that have begun and are not recorded',
  uncoveredLeaves: 'leaves that no checkpoint covers yet',
  unfitCheckpoints: 'checkpoints after the first wrong one, which do not match either',
};

const noteLines = (notes: Audited['notes']): readonly string[] =>
  Object.entries(notes).flatMap(([name, count]) =>
    count === 0 ? [] : [`  note         ${NOTES[name as keyof typeof notes]}: ${count}`],
  );

// ── --integrity: how the event log is stored, beside a running service too ─────────────────────────────

/** Those compare what the log says. */
const OTHERS = ['events', 'keys', 'checkpoint', 'policy', 'rpc', 'state'] as const;

async function checkIntegrity({ json, ...options }: Options): Promise<void> {
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
    report.end(integrity, integrityLines);
  } finally {
    progress.end();
  }
}

function integrityLines(integrity: Integrity): readonly string[] {
  const { events, streams, damaged, unchecked, head, filesChecked, findings } = integrity;
  return [
    findings === 0
      ? `${mark(true)} ${paint('green', 'The log is stored as it was written.')}`
      : `${mark(false)} ${paint('red', `${numbered(findings, 'problem')} found.`)} Keep the damaged file; put back a backup: see Damage in RUNBOOK.md.`,
    `  events       ${numbered(events, 'event')} of ${numbered(streams, 'stream')}, up to ${shown(head ?? 'nothing')}; damaged: ${damaged}`,
    `  checksums    ${unchecked === 0 ? 'of all events compared' : `compared, but ${numbered(unchecked, 'event')} of an older release ${unchecked === 1 ? 'has' : 'have'} none and ${unchecked === 1 ? 'is' : 'are'} not covered`}`,
    `  files        ${filesChecked ? 'checked by SQLite' : 'EventStoreDB checks its own, and checksums of events are its own too'}`,
  ];
}
