// The log of a token transfer (ERC-20).
import { decodeEventLog, type Hex, parseAbi } from 'viem';
import { lowerHex } from './requirements.ts';

export type DataLog = {
  readonly address: string;
  readonly data: Hex;
  readonly topics: [] | [Hex, ...Hex[]];
};

/** Addresses in lower case; the value in atomic units. */
export type TransferLog = {
  readonly asset: Hex;
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
};

const TRANSFER = parseAbi(['event Transfer(address indexed from, address indexed to, uint256 value)']);

/** null: the log is no transfer. */
export function readTransfer({ address, data, topics }: DataLog): TransferLog | null {
  try {
    const { from, to, value } = decodeEventLog({ abi: TRANSFER, data, topics }).args;
    return { asset: lowerHex(address), from: lowerHex(from), to: lowerHex(to), value };
  } catch {
    return null;
  }
}
