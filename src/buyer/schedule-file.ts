// What was bought of a schedule, beside the file that orders it: the runs that the relay has confirmed, and the token that
// cancels the schedule. Readable by its owner only; one process at a time.
import { realpathSync } from 'node:fs';
import { type Static, Type } from '@sinclair/typebox';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { Instant } from '#src/domain/event-fields.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { findText, replaceFile } from '#src/lib/files/durable.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import { OperatorError } from '#src/lib/operator-error.ts';

export const CancelToken = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });

const BoughtSchedule = Type.Object({
  v: Type.Literal(1),
  relay: Type.String(),
  payer: Type.String(),
  /** Of the order, in the ledger. */
  key: Type.String(),
  scheduleId: Type.String({ pattern: ID_PATTERN.schedule }),
  /** null: the relay did not return it. */
  cancelToken: Type.Union([CancelToken, Type.Null()]),
  /** `payment`: number of the payment, from 1. `n`: number of the run. */
  runs: Type.Array(
    Type.Object({ payment: Type.Integer({ minimum: 1 }), n: Type.Integer({ minimum: 1 }), dueAt: Instant }),
  ),
});
export type BoughtSchedule = Static<typeof BoughtSchedule>;
const isBought = shapeCheck(BoughtSchedule);

export type ScheduleFile = {
  readonly path: string;
  /** Of its ledger, unless the buyer names another. */
  readonly ledgerPath: string;
  /** null: nothing was bought yet. */
  find(): BoughtSchedule | null;
  /** Durable when it returns. */
  save(bought: BoughtSchedule): void;
  release(): void;
};

/** `ordered`: the file that orders the schedule. Throws `OperatorError` if another process buys it. */
export function openScheduleFile(ordered: string): ScheduleFile {
  const real = realpathSync(ordered);
  const path = `${real}.bought`;
  const lock = acquireFileLock(path);
  if (lock === null)
    throw new OperatorError(`${path} is in use by another process, and nothing is paid: try again`);
  return {
    path,
    ledgerPath: `${real}.ledger`,
    find() {
      const text = findText(path);
      if (text === null) return null;
      const bought = parsedJson(text);
      if (isBought(bought)) return bought;
      throw new OperatorError(
        `${path} is damaged, and nothing is paid: restore it from a backup, or move it away; the ledger still prevents a second payment for a run`,
      );
    },
    save: (bought) => replaceFile(path, `${JSON.stringify(bought, null, 2)}\n`),
    release: () => lock.release(),
  };
}
