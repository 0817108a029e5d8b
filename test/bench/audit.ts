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
import { fillSignedLog } from './signed-log.ts';

export const auditMeasure: Measure = {
  name: 'P8',
  title: 'audit of the event log',
  async run({ quick, say }) {
    const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const filled = await fillSignedLog(folder, quick ? 6000 : 60_000);
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
        ours: () => perSecond(() => audited(log), filled.events),
        peer: () => perSecond(() => readAndVerified(log), filled.receipts),
      };
      const rounds = await interleaved(quick ? 2 : 5, sides, say);
      const titles = { measure: 'P8', title: 'events', unit: '/s', peer: 'read + verify' };
      return { rows: [row(titles, ratioAtLeast(0.6), rounds)] };
    } finally {
      await log.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function audited(log: EventLog): Promise<number> {
  const auditor = openAuditor(() => undefined);
  try {
    for await (const page of pagesOf(log, null)) for (const event of page) await auditor.take(event);
    return (await auditor.finish()).events;
  } finally {
    auditor.close();
  }
}

/** How many receipts verify. */
async function readAndVerified(log: EventLog): Promise<number> {
  let verified = 0;
  let publicKey = new Uint8Array(0);
  for await (const page of pagesOf(log, null)) {
    for (const { type, data } of page) {
      if (type === 'SigningKeyActivated') publicKey = fromBase64url(String(data.x)) ?? publicKey;
      if (type !== 'ReceiptSigned') continue;
      const jws = String(data.jws);
      const end = jws.lastIndexOf('.');
      const signature = fromBase64url(jws.slice(end + 1)) ?? new Uint8Array(0);
      if (await ed25519Verify(publicKey, utf8(jws.slice(0, end)), signature)) verified++;
    }
  }
  return verified;
}
