// P8: an audit of the embedded event log against reading the log and verifying the signatures of its receipts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { openAuditor } from '#src/app/operator.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import { auditHistory } from '#test/support/audit-history.ts';
import { appendAll } from '#test/support/service-log.ts';
import { interleaved, type Measure, ratioAtLeast, row, timed } from './rounds.ts';

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
      const notes = [
        'The log is what the use cases write: paid calls, decisions, retries, a key rotation, checkpoints; the audit finds nothing. read + verify: the same log is read in the same pages, and the signature of each receipt verified.',
      ];
      return { rows: [row(titles, ratioAtLeast(0.6), rounds)], notes };
    } finally {
      await log.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

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
