// The chain as an audit reads it: of whatever accounts and transactions the record names. Each call is bounded in time.
import type { TransferInTransaction } from '../domain/audit/judge-chain.ts';
import type { ChainScan } from './chain-scan.ts';

export interface ChainAudit {
  /** CAIP-2, of the node. Throws `ChainUnavailable`. */
  network(): Promise<string>;
  /** `asset`: lower case. Its calls throw `ChainUnavailable`. */
  scanOf(asset: string): Pick<ChainScan, 'block' | 'scan'>;
  /** null: the chain has no such transaction, or it failed. Throws `ChainUnavailable`. */
  transfersIn(transaction: string): Promise<readonly TransferInTransaction[] | null>;
}
