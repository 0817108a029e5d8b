// What anyone may ask of the receipt log: its head, its tiles, and proofs over them.
import { type Refused, refused } from '../domain/refusal.ts';
import type { TileName } from '../domain/transparency/tiles.ts';

export type ConsistencyProof = {
  readonly from: number;
  readonly to: number;
  /** Base64. */
  readonly fromRoot: string;
  readonly toRoot: string;
  readonly proof: readonly string[];
};

/** Each throws `Fault('read_models_unavailable')` where the read models are away. */
export type Transparency = {
  /** The newest checkpoint that this process knows of, at most some seconds old: a signed note. Never throws. */
  latest(): string | null;
  /** The newest checkpoint; null where this relay keeps no receipt log. */
  checkpoint(): Promise<string | null>;
  /** The verifier key of the newest checkpoint, as a line of text; null where there is none. */
  key(): Promise<string | null>;
  /** Null for a tile that no checkpoint needs, or that is not so wide yet. */
  tile(name: TileName): Promise<Uint8Array | null>;
  /** A proof file up to the newest checkpoint. `receipt_not_ready`: no checkpoint has it yet. */
  prove(receiptId: string): Promise<string | Refused<'receipt_not_found' | 'receipt_not_ready'>>;
  consistency(from: number, to: number): Promise<ConsistencyProof | Refused<'invalid_request'>>;
};

/** For a deployment without a receipt log. */
export const noTransparency: Transparency = {
  latest: () => null,
  checkpoint: async () => null,
  key: async () => null,
  tile: async () => null,
  prove: async () => refused('receipt_not_found', 'This relay keeps no receipt log.'),
  consistency: async () => refused('invalid_request', 'This relay keeps no receipt log.'),
};
