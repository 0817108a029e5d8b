// P8: an audit of the embedded event log against reading the log and verifying the signatures of its receipts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { openAuditor } from '#src/app/operator.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import { interleaved, type Measure, ratioAtLeast, row, timed } from './rounds.ts';
import { type Filled, fillSignedLog } from './signed-log.ts';

export const auditMeasure: Measure = {
  name: 'P8',
  title: 'audit of the event log',
  async run(options) {
    const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const filled = await fillSignedLog(folder, options.count(40_000, 6000, 500));
    const log = await sqliteEventLog({ file: join(folder, 'events.db') });
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
        'read + verify: the same log is read in the same pages, and the signature of each receipt verified.',
      ];
      return { rows: [row(titles, ratioAtLeast(0.6), rounds)], notes };
    } finally {
      await log.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** How many events were audited; throws unless every job and receipt is in the summary. */
async function audited(log: EventLog, { jobs, receipts }: Filled): Promise<number> {
  const auditor = openAuditor(() => undefined);
  try {
    for await (const page of pagesOf(log, null)) for (const event of page) await auditor.take(event);
    const summary = await auditor.finish();
    if (summary.jobs !== jobs || summary.receipts !== receipts)
      throw new Error(`${summary.jobs} of ${jobs} jobs, ${summary.receipts} of ${receipts} receipts audited`);
    return summary.events;
  } finally {
    auditor.close();
  }
}

/** How many receipts verify. */
async function readAndVerified(log: EventLog): Promise<number> {
  let verified = 0;
  const keys = new Map<unknown, Uint8Array>();
  for await (const page of pagesOf(log, null)) {
    for (const { type, data } of page) {
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
