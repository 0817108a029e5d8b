// Judges receipts for an audit, many at a time.
import type { Fault } from '../domain/audit/finding.ts';
import type { ReceiptCase } from '../domain/audit/judge-receipt.ts';

export interface ReceiptJudge {
  /** Resolves to the faults of the receipt, some time after `flush` or further calls. Rejects if a thread fails. */
  judge(receipt: ReceiptCase): Promise<readonly Fault[]>;
  /** Lets answers of threads in, which wait while the events are read without a pause. */
  receive(): Promise<void>;
  /** The receipts so far wait for no further ones. */
  flush(): void;
  /** Ends its threads. */
  close(): void;
}
