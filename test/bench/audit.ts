// P8: an audit of the embedded event log against reading the log and verifying the signatures of its receipts; and of what
// is new in it, with the state of an earlier audit, against an audit of all of it.
import { closeSync, copyFileSync, fsyncSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { openAuditor } from '#src/app/operator.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { continueAudit } from '#src/usecases/audit/continue-audit.ts';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import { auditHistory } from '#test/support/given/audit-history.ts';
import { appendAll } from '#test/support/world/service-log.ts';
import { interleaved, type Measure, type Options, ratioAtLeast, ratioAtMost, row, timed } from './rounds.ts';

export const auditMeasure: Measure = {
  name: 'P8',
  title: 'audit of the event log',
  async run(options) {
    const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const log = await sqliteEventLog({ file: join(folder, 'events.db') });
    const filled = await fill(log, options.count(5000, 800, 50));
    const perSecond = async (work: () => Promise<number>, expected: number) => {
      let counted = 0;
      const ms = await timed(async () => {
        counted = await work();
      });
      if (counted !== expected) throw new Error(`${counted} of ${expected} were handled`);
      return filled.events / (ms / 1000);
    };
    try {
      const sides = {
        ours: () => perSecond(() => audited(log, filled), filled.events),
        peer: () => perSecond(() => readAndVerified(log), filled.receipts),
      };
      const rounds = await interleaved(options, sides);
      const titles = {
        measure: 'P8',
        title: `events of ${filled.events}`,
        unit: '/s',
        peer: 'read + verify',
      };
      const used = await usage(() => audited(log, filled));
      const notes = [
        `ours: ${used.cpuMs} ms of CPU, at most ${used.megabytes} MB more memory than before.`,
        'The log is what the use cases write: paid calls, decisions, retries, a key rotation, checkpoints; the audit finds nothing. read + verify: the same log is read in the same pages, and the signature of each receipt verified.',
      ];
      const rows = [row(titles, ratioAtLeast(0.9), rounds), await grown(log, folder, filled, options)];
      return { rows, notes: [...notes, GROWN] };
    } finally {
      await log.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const GROWN =
  'new events: an audit continues the state of one that ended 1 % before the end of the log, and keeps its own; its peer audits all of the log.';

async function grown(log: EventLog & EventScan, folder: string, filled: Filled, options: Options) {
  const [before, state] = ['before.state', 'state'].map((name) => join(folder, name)) as [string, string];
  const events = Math.max(1, Math.floor(filled.events / 100));
  const audits = async (file: string | undefined, until: string | null) => {
    const auditor = openAuditor(failOn, { stateFile: file });
    try {
      const continued =
        file === undefined ? { kind: 'continued' as const, after: null } : await continueAudit(auditor, log);
      if (continued.kind !== 'continued') throw new Error(continued.kind);
      for await (const { found } of pagesOf(log, continued.after, until))
        for (const one of found) if (one.kind === 'event') await auditor.take(one.event);
      const summary = await auditor.finish();
      if (file !== undefined && !auditor.kept.save()) throw new Error('the state was not kept');
      return summary.events;
    } finally {
      auditor.close();
    }
  };
  const head = await log.lastPosition();
  const cut = String(Number(head) - events).padStart(String(head).length, '0');
  await audits(before, cut);
  const ms = async (file: string | undefined) => {
    if (file !== undefined) copyDurably(before, file);
    return timed(async () => {
      if ((await audits(file, head)) !== filled.events) throw new Error('events were not audited');
    });
  };
  const rounds = await interleaved(options, { ours: () => ms(state), peer: () => ms(undefined) }, 'grown');
  const titles = { measure: 'P8', title: `${events} new events`, unit: 'ms', peer: 'complete audit' };
  return row(titles, ratioAtMost(0.03), rounds);
}

/** As an audit leaves it: what the copy wrote is not synced by the audit that is measured. */
function copyDurably(from: string, to: string): void {
  copyFileSync(from, to);
  const copy = openSync(to, 'r+');
  fsyncSync(copy);
  closeSync(copy);
}

const failOn = ({ kind }: { readonly kind: string }): never => {
  throw new Error(kind);
};

/** CPU of all threads, and the most memory, compared with that before. */
async function usage(work: () => Promise<unknown>) {
  const [cpu, before] = [process.cpuUsage(), process.memoryUsage.rss()];
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 20);
  await work();
  clearInterval(timer);
  const { user, system } = process.cpuUsage(cpu);
  return { cpuMs: Math.round((user + system) / 1000), megabytes: Math.round((most - before) / 1e6) };
}

type Filled = { readonly events: number; readonly receipts: number };

/** The history that the use cases leave: payments, decisions, retries, a rotation of keys, checkpoints. */
async function fill(log: EventLog, jobs: number): Promise<Filled> {
  const { events } = await auditHistory({ jobs });
  await appendAll(log, events);
  return { events: events.length, receipts: events.filter(({ type }) => type === 'ReceiptSigned').length };
}

/** How many events were audited; throws if a receipt is missing, or anything is found. */
async function audited(log: EventScan, { receipts }: Filled): Promise<number> {
  const auditor = openAuditor(() => undefined);
  try {
    for await (const { found } of pagesOf(log, null, await log.lastPosition()))
      for (const one of found) if (one.kind === 'event') await auditor.take(one.event);
    const summary = await auditor.finish();
    if (summary.receipts !== receipts || summary.findings > 0)
      throw new Error(`${summary.receipts} of ${receipts} receipts audited, ${summary.findings} findings`);
    return summary.events;
  } finally {
    auditor.close();
  }
}

/** How many receipts verify. */
async function readAndVerified(log: EventScan): Promise<number> {
  let verified = 0;
  const keys = new Map<unknown, Uint8Array>();
  for await (const { found } of pagesOf(log, null, await log.lastPosition())) {
    for (const one of found) {
      if (one.kind === 'damaged') throw new Error('the log is damaged');
      const { type, data } = one.event;
      if (type === 'SigningKeyActivated') keys.set(data.keyId, bytesOf(String(data.x)));
      const publicKey = keys.get(data.keyId);
      if (type !== 'ReceiptSigned' || publicKey === undefined) continue;
      const jws = String(data.jws);
      const end = jws.lastIndexOf('.');
      const signature = bytesOf(jws.slice(end + 1));
      if (await ed25519Verify(publicKey, utf8(jws.slice(0, end)), signature)) verified++;
    }
  }
  return verified;
}

const bytesOf = (text: string) => fromBase64url(text) ?? new Uint8Array(0);
